import { Anchor, Button, Group, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCountOf, formatDate, formatInstant, formatMoney } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { ErrorBox, PageHead, Waiting } from '../parts.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { api } from './api.ts';
import { CommissionTable } from './commission-table.tsx';
import { usePayoutCsv } from './payout-csv.ts';
import { PayoutMoney } from './payouts-page.tsx';

function Facts({ statement }: { readonly statement: Schemas['CreatorStatement'] }) {
  return (
    <div className="surface" style={{ padding: '16px 20px' }}>
      <dl className="facts">
        <dt>Creator</dt>
        <dd>{statement.creatorName}</dd>
        <dt>App</dt>
        <dd>{statement.appName}</dd>
        <dt>Payout</dt>
        <dd className="code-text">{statement.id}</dd>
        <dt>Date</dt>
        <dd>{formatInstant(statement.createdAt)}</dd>
        <dt>Time</dt>
        <dd>
          {formatDate(statement.from)} to {formatDate(statement.to)}
        </dd>
        <dt>Earned or given back</dt>
        <dd>
          {formatMoney(statement.earnedCents)} in {formatCountOf(statement.earnedCount, 'row')}
        </dd>
        {statement.takenBackCount > 0 && (
          <>
            <dt>Taken back or deducted</dt>
            <dd>
              {formatMoney(statement.takenBackCents)} in {formatCountOf(statement.takenBackCount, 'row')}
            </dd>
          </>
        )}
        <dt>Booked</dt>
        <dd>
          <b>{formatMoney(statement.totalCents)}</b>
        </dd>
        <dt>Money</dt>
        <dd>
          <PayoutMoney payout={statement} />
          {statement.money?.state === 'returned' && ' Check with who pays you where it should go.'}
        </dd>
      </dl>
    </div>
  );
}

/** The statement of a payout, to read, to print and to save as CSV. */
export function StatementPage() {
  const { id = '' } = useParams();
  const statement = useQuery({
    queryKey: ['statement', id],
    queryFn: async () => await read(api.GET('/creator/payouts/{id}/statement', { params: { path: { id } } })),
  });
  const rows = useList(
    ['statement-rows', id],
    async (cursor) =>
      await read(
        api.GET('/creator/commissions', {
          params: { query: { payoutId: id, limit: 100, ...cursor } },
        }),
      ),
    { isEnabled: statement.data !== undefined },
  );
  const save = usePayoutCsv();
  if (statement.error !== null) {
    return (
      <>
        <PageHead title="Statement">
          <Anchor component={Link} to="/payouts" size="sm">
            All payouts
          </Anchor>
        </PageHead>
        <ErrorBox error={statement.error} retry={() => void statement.refetch()} />
      </>
    );
  }
  if (statement.data === undefined) return <Waiting what="the statement" />;
  return (
    <>
      <PageHead
        title={`Statement of ${formatDate(statement.data.createdAt)}`}
        aside={
          <Group gap="xs" className="no-print">
            <Button variant="default" onClick={() => print()}>
              Print
            </Button>
            <Button variant="default" loading={save.isPending} onClick={() => save.mutate(id)}>
              CSV
            </Button>
          </Group>
        }
      >
        <Anchor component={Link} to="/payouts" size="sm" className="no-print">
          All payouts
        </Anchor>
      </PageHead>
      <Stack gap="lg">
        {save.error !== null && <ErrorBox error={save.error} />}
        <Facts statement={statement.data} />
        <ListView list={rows} what="the rows" nothing={<Nothing title="The payout has no rows" />}>
          {(shown) => <CommissionTable rows={shown} />}
        </ListView>
        {rows.query.hasNextPage && (
          <p className="quiet" style={{ margin: 0, fontSize: 14 }}>
            Printing contains the rows that are loaded; the CSV contains all.
          </p>
        )}
      </Stack>
    </>
  );
}
