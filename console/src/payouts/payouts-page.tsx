import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { formatAgo, formatCount, formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { FilterBar } from '../parts/filter-bar.tsx';
import { creatorFilter } from '../parts/filter-kinds.ts';
import { useFilters } from '../parts/filters.ts';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { ListEnd } from '../parts/list.tsx';
import { isLoopback } from '../parts/loopback.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, Waiting } from '../parts.tsx';
import { useCurrentSession, usePermission } from '../session.ts';
import { useAttempts } from './attempts.ts';
import { PAYOUT_KEYS } from './keys.ts';
import { PartsOfPayouts } from './parts-of-payouts.tsx';
import { PayDialog, paymentOf, WaitingPayments } from './pay-dialog.tsx';
import type { Payment } from './pay-dialog.tsx';
import { ReturnedMoney } from './run-resend.tsx';
import { PayoutHistory } from './payout-history.tsx';
import { DraftButton } from './runs-page.tsx';
import { useOpenRun } from './runs.ts';
import { progressOf, whyNotPaid } from './words.ts';
import type { Run } from './words.ts';

/** Reads what is due to each creator. */
const usePreview = (appId: string) =>
  useQuery({
    queryKey: PAYOUT_KEYS.preview(appId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payouts/preview', { params: { path: { appId } } })),
    refetchInterval: OVERVIEW_MS,
  });

type DueRow = Schemas['PayoutPreview']['rows'][number];

const dueColumnsOf = (appId: string, onPay: (payment: Payment) => void): readonly Column<DueRow>[] => [
  {
    name: 'Creator',
    share: 40,
    cell: (row) => (
      <>
        <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>{' '}
        {row.moreRemains && (
          <span className="quiet">More than one payout takes: pay until nothing remains.</span>
        )}
      </>
    ),
  },
  { name: 'Rows', kind: 'number', cell: (row) => formatCount(row.count) },
  { name: 'Due', kind: 'number', isLead: true, cell: (row) => formatMoney(row.totalCents) },
  {
    name: 'Actions',
    kind: 'actions',
    cell: (row) => (
      <Button
        variant="default"
        size="compact-sm"
        aria-label={`Pay ${row.affiliateName} ${formatMoney(row.totalCents)}`}
        onClick={() => onPay(paymentOf(row))}
      >
        Pay …
      </Button>
    ),
  },
];

function Due({
  appId,
  preview,
  onPay,
}: {
  readonly appId: string;
  readonly preview: ReturnType<typeof usePreview>;
  readonly onPay: (payment: Payment) => void;
}) {
  const failure = preview.error !== null && (
    <ErrorBox error={preview.error} retry={() => void preview.refetch()} />
  );
  if (preview.data === undefined) return failure || <Waiting what="what is due" />;
  const { rows, totalCents } = preview.data;
  return (
    <Stack>
      {failure}
      <div className="surface">
        {rows.length === 0 ? (
          <Stack gap="xs" p="xl" align="flex-start">
            <Text fw={600}>Nothing is due</Text>
            <Text size="sm" className="quiet">
              A commission is due when its hold period is over. A creator with a negative balance is paid once
              new commissions outweigh it.
            </Text>
          </Stack>
        ) : (
          <DataTable
            columns={dueColumnsOf(appId, onPay)}
            rows={rows}
            idOf={({ affiliateId }) => affiliateId}
            foot={
              <tr>
                <td>All creators</td>
                <td />
                <td className="number lead">{formatMoney(totalCents)}</td>
                <td />
              </tr>
            }
          />
        )}
      </div>
    </Stack>
  );
}

type NotPayableRow = Schemas['NotPayable'];

/** Says why a creator is paid nothing now, and until when if that is known. */
const whyNotNow = ({ reason, balanceCents, nextDueAt }: NotPayableRow): string =>
  reason === 'held' && nextDueAt !== null
    ? `Not due yet: the next commission is due ${formatAgo(nextDueAt)}.`
    : whyNotPaid({ reason, balanceCents });

const notPaidColumnsOf = (appId: string): readonly Column<NotPayableRow>[] => [
  {
    name: 'Creator',
    share: 26,
    cell: (row) => <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>,
  },
  { name: 'Why', share: 40, cell: (row) => <span className="wrapped">{whyNotNow(row)}</span> },
  { name: 'Held', kind: 'number', dropsAt: 1, cell: (row) => formatMoney(row.heldCents) },
  { name: 'Balance', kind: 'number', isLead: true, cell: (row) => formatMoney(row.balanceCents) },
];

/** Says that a draft waits for an approval, or that a run is being paid. */
function OpenRun({ appId, run }: { readonly appId: string; readonly run: Run }) {
  return (
    <div className="surface part">
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          {run.status === 'draft'
            ? `A draft of ${formatInstant(run.createdAt)} waits for an approval: ${formatCountOf(run.itemCount, 'creator')}, ${formatMoney(run.totalCents)}.`
            : `A payout run of ${formatMoney(run.totalCents)} is being paid: ${progressOf(run)}.`}
        </Text>
        <Anchor component={Link} to={`/apps/${appId}/payouts/runs/${run.id}`} size="sm">
          {run.status === 'draft' ? 'Open the draft' : 'Open the run'}
        </Anchor>
      </Group>
    </div>
  );
}

/** The creators who are paid nothing at present, and why. Nothing where there are none. */
function NotPaid({ appId }: { readonly appId: string }) {
  const list = useQuery({
    queryKey: PAYOUT_KEYS.notPayable(appId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payouts/not-payable', { params: { path: { appId } } })),
    refetchInterval: OVERVIEW_MS,
  });
  const failure = list.error !== null && <ErrorBox error={list.error} retry={() => void list.refetch()} />;
  if (list.data === undefined || (list.data.rows.length === 0 && !list.data.truncated))
    return failure || null;
  const { rows, truncated } = list.data;
  return (
    <Section
      id="not-paid"
      title="Not payable now"
      hint={`Creators with commissions that cannot be paid yet, and why.${isLoopback(location.href) ? ' For a trial, set the hold period to 0 days in the settings: it counts for purchases after that.' : ''}`}
    >
      {failure}
      <div className="surface" hidden={rows.length === 0}>
        <DataTable columns={notPaidColumnsOf(appId)} rows={rows} idOf={({ affiliateId }) => affiliateId} />
      </div>
      {truncated && <ListEnd>There are more. The page of a creator shows what is held until when.</ListEnd>}
    </Section>
  );
}

function DuePart({ appId }: { readonly appId: string }) {
  const session = useCurrentSession();
  const scope = { accountId: session.account.id, appId };
  const attempts = useAttempts(scope);
  const filters = useFilters('creator');
  const preview = usePreview(appId);
  const run = useOpenRun(appId);
  const [payment, setPayment] = useState<Payment | null>(null);
  const hasDue = preview.data !== undefined && preview.data.rows.length > 0;
  return (
    <Stack gap="xl">
      {payment === null && <WaitingPayments scope={scope} attempts={attempts} onOpen={setPayment} />}
      {run != null && run.itemCount > 0 && <OpenRun appId={appId} run={run} />}
      <ReturnedMoney appId={appId} open={run ?? null} />
      <Section
        id="due"
        title="Due now"
        hint="Net of refunds. Pay creators one by one, or many at once by a run."
        aside={hasDue && <DraftButton appId={appId} open={run} />}
      >
        <Due appId={appId} preview={preview} onPay={setPayment} />
      </Section>
      <NotPaid appId={appId} />
      <Section id="history" title="History">
        <FilterBar filters={filters} kinds={[creatorFilter(appId)]} />
        <PayoutHistory appId={appId} affiliateId={filters.get('creator')} filters={filters} />
      </Section>
      <PayDialog scope={scope} payment={payment} onClose={() => setPayment(null)} />
    </Stack>
  );
}

export default function PayoutsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      {canRead ? (
        <>
          <PartsOfPayouts appId={appId} />
          <DuePart appId={appId} />
        </>
      ) : (
        <NoPermission permission="read" what="payouts" />
      )}
    </>
  );
}
