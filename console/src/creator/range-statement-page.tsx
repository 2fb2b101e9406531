import { Button, Group, NativeSelect, Stack } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { AS_CSV, read, readCsv } from '../api/client.ts';
import { formatCount, formatDate, formatMoney, formatMonth, timeZone } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { ErrorBox, PageHead } from '../parts.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { MOST_CSV_ROWS, saveWholeCsv } from '../parts/whole-csv.ts';
import { api } from './api.ts';
import { CommissionTable } from './commission-table.tsx';
import type { Creator } from './queries.ts';

const MONTHS = 24;

/** A month in the time zone of the browser. `to` is the first instant of the next one. */
interface Month {
  /** As in the address: `2026-10`. */
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

/** Returns the latest months, the present one first. */
function latestMonths(now: Date): Month[] {
  return Array.from({ length: MONTHS }, (_, back) => {
    const first = new Date(now.getFullYear(), now.getMonth() - back, 1);
    const next = new Date(first.getFullYear(), first.getMonth() + 1, 1);
    const key = `${first.getFullYear()}-${String(first.getMonth() + 1).padStart(2, '0')}`;
    return { key, from: first.getTime(), to: next.getTime() };
  });
}

/** The statement of a month, to read, to print and to save as CSV. */
export function RangeStatementPage({ creator }: { readonly creator: Creator }) {
  const [search, setSearch] = useSearchParams();
  const [months] = useState(() => latestMonths(new Date()));
  const month = months.find(({ key }) => key === search.get('month')) ?? (months[0] as Month);
  const { from, to } = month;
  const totals = useQuery({
    queryKey: ['totals', from, to],
    queryFn: async () =>
      await read(api.GET('/creator/commissions/totals', { params: { query: { from, to } } })),
  });
  const rows = useList(
    ['range', from, to],
    async (cursor) =>
      await read(
        api.GET('/creator/commissions', {
          params: { query: { from, to, limit: 100, ...cursor } },
        }),
      ),
  );
  const save = useMutation({
    mutationFn: async () =>
      await saveWholeCsv(
        `statement-${month.key}`,
        async (cursor) =>
          await readCsv(
            api.GET('/creator/commissions', { params: { query: { from, to, ...cursor } }, ...AS_CSV }),
          ),
      ),
  });
  return (
    <>
      <PageHead
        title={`Statement of ${formatMonth(from)}`}
        aside={
          <Group gap="xs" className="no-print">
            <NativeSelect
              aria-label="Month"
              value={month.key}
              onChange={(event) => setSearch({ month: event.currentTarget.value }, { replace: true })}
            >
              {months.map(({ key, from: first }) => (
                <option key={key} value={key}>
                  {formatMonth(first)}
                </option>
              ))}
            </NativeSelect>
            <Button variant="default" onClick={() => print()}>
              Print
            </Button>
            <Button variant="default" loading={save.isPending} onClick={() => save.mutate()}>
              CSV
            </Button>
          </Group>
        }
      >
        Purchases, refunds, bonuses and deductions of the month, whenever they are paid.
      </PageHead>
      <Stack gap="lg">
        {save.error !== null && <ErrorBox error={save.error} />}
        {save.data === true && (
          <p role="alert">The file has the first {formatCount(MOST_CSV_ROWS)} rows of the month only.</p>
        )}
        {totals.error !== null && <ErrorBox error={totals.error} retry={() => void totals.refetch()} />}
        <div className="surface" style={{ padding: '16px 20px' }}>
          <dl className="facts">
            <dt>Creator</dt>
            <dd>{creator.name}</dd>
            <dt>App</dt>
            <dd>{creator.appName}</dd>
            <dt>Range</dt>
            <dd>
              {formatDate(from)} to {formatDate(to - 1)}, {timeZone}
            </dd>
            <dt>Earned</dt>
            <dd>
              <b>{totals.data === undefined ? '…' : formatMoney(totals.data.totalCents)}</b>, net of refunds
            </dd>
          </dl>
        </div>
        <ListView
          list={rows}
          what="the rows"
          nothing={
            <Nothing title="Nothing in this month">Choose another month, or see all commissions.</Nothing>
          }
        >
          {(shown) => <CommissionTable rows={shown} />}
        </ListView>
        {rows.query.hasNextPage && (
          <p className="quiet" style={{ margin: 0, fontSize: 14 }}>
            Printing contains the rows that are loaded. The CSV contains all.
          </p>
        )}
      </Stack>
    </>
  );
}
