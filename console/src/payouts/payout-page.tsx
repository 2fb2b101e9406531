import { Alert, Anchor, Button, FileButton, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { CommissionTable, useCommissions } from '../commissions/commission-table.tsx';
import { Section } from '../lists.tsx';
import { CopyLine, NoPermission, PageHead } from '../parts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { usePermission } from '../session.ts';
import { CsvDownload } from './csv-download.tsx';
import { sha256Of } from './csv-file.ts';
import { PAYOUT_KEYS } from './keys.ts';
import { payerOf } from './payout-history.tsx';
import { MoneyOfPayout, Transfers } from './transfers.tsx';

/** Compares a chosen file with the hash of the payout. The file stays in the browser. */
function FileCheck({ expected }: { readonly expected: string }) {
  const [checked, setChecked] = useState<{ readonly name: string; readonly isSame: boolean } | null>(null);
  const again = useRef<() => void>(null);
  const check = async (file: File | null) => {
    if (file !== null) setChecked({ name: file.name, isSame: (await sha256Of(file)) === expected });
  };
  return (
    <Stack gap="xs">
      <Group>
        <FileButton
          accept="text/csv,.csv"
          resetRef={again}
          onChange={(file) => {
            // The same file can be chosen again.
            again.current?.();
            void check(file);
          }}
          inputProps={{ 'aria-label': 'File to check' }}
        >
          {(props) => (
            <Button variant="default" {...props}>
              Check a file …
            </Button>
          )}
        </FileButton>
        <Text size="sm" className="quiet">
          It is compared here and not sent.
        </Text>
      </Group>
      {checked !== null && (
        <Alert
          role="status"
          color={checked.isSame ? 'teal' : 'red'}
          variant="light"
          title={checked.isSame ? 'It is the CSV of this payout' : 'It is not the CSV of this payout'}
        >
          <Text size="sm">
            {checked.isSame
              ? `${checked.name} has the same SHA-256: no byte was changed.`
              : `${checked.name} has another SHA-256. It was changed, or it belongs to another payout.`}
          </Text>
        </Alert>
      )}
    </Stack>
  );
}

function Facts({
  appId,
  payout,
}: {
  readonly appId: string;
  readonly payout: Schemas['PayoutWithTransfers'];
}) {
  return (
    <div className="surface" style={{ padding: 20 }}>
      <dl className="facts">
        <dt>Creator</dt>
        <dd>
          <Anchor component={Link} to={`/apps/${appId}/creators/${payout.affiliateId}`} size="sm">
            {payout.affiliateName}
          </Anchor>
        </dd>
        <dt>Total</dt>
        <dd>
          <b>{formatMoney(payout.totalCents)}</b> in {formatCountOf(payout.itemCount, 'row')}
        </dd>
        <dt>Booked</dt>
        <dd>
          {formatInstant(payout.createdAt)} by {payerOf(payout)}
        </dd>
        <dt>Money</dt>
        <dd>
          <MoneyOfPayout money={payout.money} />
        </dd>
        <dt>Number</dt>
        <dd className="code-text">{payout.id}</dd>
      </dl>
    </div>
  );
}

function PayoutView({
  appId,
  payout,
  items,
}: {
  readonly appId: string;
  readonly payout: Schemas['PayoutWithTransfers'];
  readonly items: ReturnType<typeof useCommissions>;
}) {
  const { id: payoutId, csvSha256, chainPosition } = payout;
  return (
    <Stack gap="xl">
      <Facts appId={appId} payout={payout} />
      <Transfers appId={appId} payout={payout} />
      <Section
        id="proof"
        title="CSV and proof"
        hint="The CSV is stored once and never changes. Its SHA-256 shows whether a copy is the same."
        aside={<CsvDownload appId={appId} payoutId={payoutId} />}
      >
        {csvSha256 === null ? (
          <Text size="sm">The CSV is being stored. Load the page again in a moment.</Text>
        ) : (
          <Stack gap="sm">
            <CopyLine text={csvSha256} what="the SHA-256" />
            {chainPosition !== null && (
              <Text size="sm" className="quiet">
                Number {formatCount(chainPosition)} in the chain of the payouts of this app.
              </Text>
            )}
            <FileCheck expected={csvSha256} />
          </Stack>
        )}
      </Section>
      <Section id="items" title="Commissions in it">
        <CommissionTable appId={appId} list={items} query={{ payoutId }} />
      </Section>
    </Stack>
  );
}

export default function PayoutPage() {
  const { appId = '', payoutId = '' } = useParams();
  const canRead = usePermission('read');
  const payout = useQuery({
    queryKey: PAYOUT_KEYS.one(appId, payoutId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payouts/{payoutId}', { params: { path: { appId, payoutId } } })),
    enabled: canRead,
  });
  const items = useCommissions(appId, { payoutId });
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="payouts" />;
    if (payout.error instanceof Problem && payout.error.status === 404)
      return <Text size="sm">There is no such payout in this app.</Text>;
    return (
      <Loaded reading={payout} what="the payout">
        {(loaded) => <PayoutView appId={appId} payout={loaded} items={items} />}
      </Loaded>
    );
  };
  return (
    <>
      <Anchor component={Link} to={`/apps/${appId}/payouts`} size="sm">
        All payouts
      </Anchor>
      <PageHead title={payout.data === undefined ? 'Payout' : `Payout to ${payout.data.affiliateName}`} />
      {content()}
    </>
  );
}
