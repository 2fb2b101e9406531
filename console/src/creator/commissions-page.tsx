import { Anchor, Group, NativeSelect } from '@mantine/core';
import { Link, useSearchParams } from 'react-router';
import { read, given } from '../api/client.ts';
import { Nothing } from '../lists.tsx';
import { PageHead } from '../parts.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { api } from './api.ts';
import { CommissionTable } from './commission-table.tsx';
import { COMMISSION_STATUSES } from '../parts/money-state.tsx';

export function CommissionsPage() {
  const [search, setSearch] = useSearchParams();
  const asked = search.get('status') ?? '';
  const status = asked in COMMISSION_STATUSES ? (asked as keyof typeof COMMISSION_STATUSES) : null;
  const list = useList(
    ['commissions', status],
    async (cursor) =>
      await read(
        api.GET('/creator/commissions', {
          params: {
            query: { ...given({ status: status ?? undefined }), ...cursor },
          },
        }),
      ),
  );
  return (
    <>
      <PageHead
        title="Commissions"
        aside={
          <Group gap="xs">
            <NativeSelect
              aria-label="Status"
              value={status ?? ''}
              onChange={({ currentTarget: { value } }) => setSearch(value === '' ? {} : { status: value })}
            >
              <option value="">All</option>
              {Object.entries(COMMISSION_STATUSES).map(([value, name]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </NativeSelect>
          </Group>
        }
      >
        Each purchase that counted for you, what was taken back, and bonuses and deductions.{' '}
        <Anchor component={Link} to="/statement" size="sm">
          Statement of a month
        </Anchor>
      </PageHead>
      <ListView
        list={list}
        what="your commissions"
        nothing={
          status === null ? (
            <Nothing title="No commission yet">
              The first one appears when a user who came by your link or code buys something.
            </Nothing>
          ) : (
            <Nothing title="Nothing matches">No commission has this status.</Nothing>
          )
        }
      >
        {(rows) => <CommissionTable rows={rows} />}
      </ListView>
    </>
  );
}
