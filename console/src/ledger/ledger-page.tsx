import { Button, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatInstant } from '../format.ts';
import { SettingsParts } from '../navigation.tsx';
import { ErrorBox, NoPermission, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { RowsCut, RuleRow, RuleTable } from '../parts/rules.tsx';
import { usePermission } from '../session.ts';

type Check = Schemas['LedgerCheck']['checks'][number];

function CheckRow({ check }: { readonly check: Check }) {
  const result = (
    <Tag tone={check.ok ? 'good' : 'bad'}>
      {check.ok ? 'Holds' : `${formatCount(check.violations)} broken`}
    </Tag>
  );
  return (
    <RuleRow rule={check} result={result}>
      {check.examples.length > 0 && (
        <ul className="changes">
          {check.examples.map((example) => (
            <li key={example}>{example}</li>
          ))}
        </ul>
      )}
      <RowsCut violations={check.violations} />
    </RuleRow>
  );
}

function Checks({ appId }: { readonly appId: string }) {
  // A check reads every row of the app, so it runs when the page is opened and when it is asked for, and no more.
  const check = useQuery({
    queryKey: ['ledger-check', appId],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/diagnostics/ledger', { params: { path: { appId } } })),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });
  const again = () => void check.refetch();
  if (check.error !== null && !check.isFetching) return <ErrorBox error={check.error} retry={again} />;
  if (check.data === undefined) return <Waiting what="the checks" />;
  // Broken rules first.
  const rows = check.data.checks.toSorted((a, b) => Number(a.ok) - Number(b.ok));
  return (
    <Stack gap="sm">
      <div role="status">
        <Text fw={600}>
          {check.data.ok
            ? `All ${rows.length} rules hold.`
            : 'A rule is broken. Send this page to the operator of the service: no row is edited by hand.'}
        </Text>
        <Text size="sm" className="quiet">
          Checked {formatInstant(check.data.checkedAt)}.
        </Text>
      </div>
      <Button
        variant="default"
        size="xs"
        loading={check.isFetching}
        onClick={again}
        style={{ alignSelf: 'flex-start' }}
      >
        Check again
      </Button>
      <RuleTable>
        {rows.map((one) => (
          <CheckRow key={one.name} check={one} />
        ))}
      </RuleTable>
    </Stack>
  );
}

export default function LedgerPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <SettingsParts appId={appId} />
      {canRead ? <Checks key={appId} appId={appId} /> : <NoPermission permission="read" what="the checks" />}
    </>
  );
}
