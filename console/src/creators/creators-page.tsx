import { Button, Group, NativeSelect } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, given, AS_CSV, read, readCsv } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatMoney } from '../format.ts';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Columns } from '../parts/data-table.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, textFilter } from '../parts/filter-kinds.ts';
import { oneOf, useFilters } from '../parts/filters.ts';
import type { Filters } from '../parts/filters.ts';
import { HeadAside, HeadNote } from '../parts/head-aside.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { BulkBar, useSelection } from '../parts/selection.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { useOpensNew } from '../shortcuts/use-opens-new.ts';
import { IS_NEW } from '../shortcuts/use-shortcuts.ts';
import { CreatorsBulk } from './bulk.tsx';
import { CreatorSheet } from './creator-sheet.tsx';
import { PauseDialog } from './pause-dialog.tsx';

const PasteDialog = lazy(async () => await import('./paste-dialog.tsx'));

type Creator = Schemas['ListedAffiliate'];

export const CREATOR_STATUSES: Readonly<Record<Creator['status'], string>> = {
  active: 'Active',
  paused: 'Paused',
  removed: 'Removed',
};
export const CREATOR_TONES = { active: 'good', paused: 'wait', removed: 'plain' } as const;

const SORTS = { name: 'By name', earnings: 'Earned most' } as const;

const SEARCH = textFilter('q', 'Search', 'Search: name, e-mail, id');
const KINDS = [choiceFilter('status', 'Status', CREATOR_STATUSES), textFilter('tag', 'Tag', 'A whole tag')];

const idOf = ({ id }: Creator) => id;

/** How many creators a page has. */
const PAGE_SIZE = 50;

/** The columns of the list. E-mail addresses and tags have one where a creator who is shown has them. */
const columnsOf = (appId: string, rows: readonly Creator[]): Columns<Creator> => [
  {
    name: 'Creator',
    sort: { by: 'name', direction: 'ascending' },
    share: 28,
    cell: (row) => <Link to={`/apps/${appId}/creators/${row.id}`}>{row.name}</Link>,
  },
  rows.some(({ email }) => email !== null) && {
    name: 'E-mail',
    share: 26,
    dropsAt: 2,
    isOffPhone: true,
    cell: (row) => row.email,
  },
  rows.some(({ tags = [] }) => tags.length > 0) && {
    name: 'Tags',
    share: 16,
    dropsAt: 2,
    isOffPhone: true,
    cell: (row) => row.tags?.join(', '),
  },
  {
    name: 'Status',
    cell: (row) => (
      <>
        <Tag tone={CREATOR_TONES[row.status]}>{CREATOR_STATUSES[row.status]}</Tag>{' '}
        {row.payoutBlock !== undefined && <span className="quiet">payouts blocked</span>}
      </>
    ),
  },
  { name: 'Clicks', kind: 'number', dropsAt: 1, cell: (row) => formatCount(row.clicks) },
  { name: 'Installs', kind: 'number', dropsAt: 1, cell: (row) => formatCount(row.installs) },
  {
    name: 'Earned',
    kind: 'number',
    isLead: true,
    sort: { by: 'earnings', direction: 'descending' },
    cell: (row) => formatMoney(row.commissionCents),
  },
];

/** The order of the list, also where the heads of the columns are not shown. */
function Order({ filters }: { readonly filters: Filters }) {
  return (
    <NativeSelect
      aria-label="Order"
      size="xs"
      value={filters.get('sort') ?? ''}
      onChange={(event) => filters.set({ sort: event.currentTarget.value })}
    >
      <option value="">Oldest first</option>
      {Object.entries(SORTS).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </NativeSelect>
  );
}

function Creators({ appId }: { readonly appId: string }) {
  const filters = useFilters('q', 'status', 'tag', 'sort');
  const path = { appId };
  const sort = oneOf(['name', 'earnings'], filters.get('sort'));
  const query = given({
    q: filters.get('q'),
    status: oneOf(['active', 'paused', 'removed'], filters.get('status')),
    tag: filters.get('tag'),
    sort,
  });
  const selection = useSelection<Creator>(({ name }) => name);
  const [pausing, setPausing] = useState<readonly Creator[] | null>(null);
  const readPart = async (cursor: { readonly cursor?: string }) =>
    await readCsv(
      api.GET('/apps/{appId}/affiliates', { params: { path, query: { ...query, ...cursor } }, ...AS_CSV }),
    );
  const list = useList(
    ['creators', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/affiliates', {
          params: { path, query: { limit: PAGE_SIZE, ...query, ...cursor } },
        }),
      ),
    { idOf, keepsRows: true },
  );
  const columns = columnsOf(appId, list.rows);
  return (
    <>
      <FilterBar
        filters={filters}
        lead={SEARCH}
        kinds={KINDS}
        aside={
          <>
            <Order filters={filters} />
            <ViewsButton list="creators" appId={appId} filters={filters} />
            <ColumnsButton table="creators" columns={columns} />
            <CsvButton name="creators" readPart={readPart} />
          </>
        }
      />
      <ListView
        list={list}
        what="creators"
        isFiltered={query.q !== undefined || query.status !== undefined || query.tag !== undefined}
        onClearFilters={filters.clear}
        nothingYet="Add a creator, then give them a link. What users who came by the link pay earns a commission."
      >
        {(rows) => (
          <>
            <DataTable
              name="creators"
              columns={columns}
              rows={rows}
              idOf={idOf}
              sorting={{ by: sort ?? '', onChange: (by) => filters.set({ sort: by }) }}
              selection={selection}
            />
            <BulkBar rows={rows} idOf={idOf} selection={selection}>
              {(selected) => (
                <CreatorsBulk
                  appId={appId}
                  selected={selected}
                  readPart={readPart}
                  onPause={() => setPausing(selected)}
                />
              )}
            </BulkBar>
          </>
        )}
      </ListView>
      <PauseDialog
        appId={appId}
        creators={pausing}
        onDone={(done) => selection.set(done.map(idOf), false)}
        onClose={() => setPausing(null)}
      />
    </>
  );
}

export default function CreatorsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const canWrite = usePermission('write');
  const [open, setOpen] = useState<'new' | 'paste' | null>(null);
  const close = () => setOpen(null);
  useOpensNew(() => setOpen('new'));
  return (
    <>
      <HeadAside>
        <Group gap="xs">
          <Button variant="default" disabled={!canWrite} onClick={() => setOpen('paste')}>
            Paste CSV
          </Button>
          <Button {...IS_NEW} disabled={!canWrite} onClick={() => setOpen('new')}>
            New creator
          </Button>
        </Group>
      </HeadAside>
      {!canWrite && <HeadNote>Adding creators needs the permission “write”, which you do not have.</HeadNote>}
      {canRead ? <Creators key={appId} appId={appId} /> : <NoPermission permission="read" what="creators" />}
      <Dialog isOpen={open === 'new'} onClose={close} title="New creator">
        <CreatorSheet appId={appId} onClose={close} />
      </Dialog>
      {open === 'paste' && (
        <Suspense>
          <PasteDialog appId={appId} isOpen onClose={close} />
        </Suspense>
      )}
    </>
  );
}
