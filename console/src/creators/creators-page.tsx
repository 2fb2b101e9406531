import { Button, Group, Text } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { api, given, AS_CSV, read, readCsv } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatMoney } from '../format.ts';
import { NoPermission, PageHead } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { FilterBar, oneOf, SelectFilter, TextFilter, useFilters } from '../parts/filters.tsx';
import { ListEnd, ListView, MOST_FOUND, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { IS_NEW } from '../shortcuts/use-shortcuts.ts';
import { CreatorForm } from './creator-form.tsx';

const PasteDialog = lazy(async () => await import('./paste-dialog.tsx'));

type Creator = Schemas['ListedAffiliate'];

export const CREATOR_STATUSES: Readonly<Record<Creator['status'], string>> = {
  active: 'Active',
  paused: 'Paused',
  removed: 'Removed',
};
export const CREATOR_TONES = { active: 'good', paused: 'wait', removed: 'plain' } as const;

/** How many creators the order by earnings returns at most. */
const MOST_LEADERS = 50;

const SORTS = { name: 'By name', earnings: 'Earned most' } as const;

function CreatorTable({ appId, rows }: { readonly appId: string; readonly rows: readonly Creator[] }) {
  return (
    <table className="rows">
      <thead>
        <tr>
          <th scope="col">Creator</th>
          <th scope="col">Status</th>
          <th scope="col" className="number">
            Clicks
          </th>
          <th scope="col" className="number">
            Installs
          </th>
          <th scope="col" className="number">
            Earned
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <td>
              <Link to={`/apps/${appId}/creators/${row.id}`}>{row.name}</Link>
              {row.email !== null && (
                <Text size="xs" className="quiet">
                  {row.email}
                </Text>
              )}
            </td>
            <td>
              <Tag tone={CREATOR_TONES[row.status]}>{CREATOR_STATUSES[row.status]}</Tag>
              {row.payoutBlock !== undefined && (
                <Text size="xs" className="quiet">
                  payouts blocked
                </Text>
              )}
            </td>
            <td className="number" data-name="Clicks">
              {formatCount(row.clicks)}
            </td>
            <td className="number" data-name="Installs">
              {formatCount(row.installs)}
            </td>
            <td className="number lead" data-name="Earned">
              {formatMoney(row.commissionCents)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Creators({ appId }: { readonly appId: string }) {
  const filters = useFilters('q', 'status', 'sort');
  const text = filters.get('q');
  const status = oneOf(['active', 'paused', 'removed'], filters.get('status'));
  const sort = oneOf(['name', 'earnings'], filters.get('sort'));
  const query = given({ status, sort });
  const list = useList(
    ['creators', appId, text ?? '', query],
    async (cursor) => {
      if (text === undefined) {
        return await read(
          api.GET('/apps/{appId}/affiliates', {
            params: { path: { appId }, query: { ...query, ...cursor } },
          }),
        );
      }
      const { affiliates } = await read(
        api.GET('/apps/{appId}/search', { params: { path: { appId }, query: { q: text } } }),
      );
      return { items: affiliates, nextCursor: null };
    },
    { idOf: ({ id }) => id },
  );
  return (
    <>
      <FilterBar
        filters={filters}
        aside={
          text === undefined &&
          sort !== 'earnings' && (
            <CsvButton
              name="creators"
              readPart={async (cursor) =>
                await readCsv(
                  api.GET('/apps/{appId}/affiliates', {
                    params: { path: { appId }, query: { ...query, ...cursor } },
                    ...AS_CSV,
                  }),
                )
              }
            />
          )
        }
      >
        <TextFilter filters={filters} name="q" label="Search" placeholder="name, e-mail, id" />
        {text === undefined && (
          <>
            <SelectFilter filters={filters} name="status" label="Status" options={CREATOR_STATUSES} />
            <SelectFilter filters={filters} name="sort" label="Order" all="Oldest first" options={SORTS} />
          </>
        )}
      </FilterBar>
      <ListView
        list={list}
        what="creators"
        isFiltered={text !== undefined || status !== undefined}
        onClearFilters={filters.clear}
        nothingYet="Add a creator, then give them a link. What users who came by the link pay earns a commission."
      >
        {(rows) => <CreatorTable appId={appId} rows={rows} />}
      </ListView>
      {text !== undefined && list.rows.length >= MOST_FOUND && (
        <ListEnd>The first {MOST_FOUND}: enter more of the name</ListEnd>
      )}
      {text === undefined && sort === 'earnings' && list.rows.length >= MOST_LEADERS && (
        <ListEnd>The {MOST_LEADERS} who earned most</ListEnd>
      )}
    </>
  );
}

export default function CreatorsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const canWrite = usePermission('write');
  const navigate = useNavigate();
  const [open, setOpen] = useState<'new' | 'paste' | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <PageHead
        title="Creators"
        aside={
          <Group gap="xs">
            <Button variant="default" disabled={!canWrite} onClick={() => setOpen('paste')}>
              Paste CSV
            </Button>
            <Button {...IS_NEW} disabled={!canWrite} onClick={() => setOpen('new')}>
              New creator
            </Button>
          </Group>
        }
      >
        Who shares your links, and what they earned.{' '}
        {!canWrite && 'Adding creators needs the permission “write”, which your key lacks.'}
      </PageHead>
      {canRead ? <Creators key={appId} appId={appId} /> : <NoPermission permission="read" what="creators" />}
      <Dialog isOpen={open === 'new'} onClose={close} title="New creator">
        <CreatorForm
          appId={appId}
          onCancel={close}
          onDone={(id) => void navigate(`/apps/${appId}/creators/${id}`)}
        />
      </Dialog>
      {open === 'paste' && (
        <Suspense>
          <PasteDialog appId={appId} isOpen onClose={close} />
        </Suspense>
      )}
    </>
  );
}
