import { Button, Group } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatMoney } from '../format.ts';
import { CopyButton } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { LinkDialog } from './link-dialog.tsx';

type ListedLink = Schemas['ListedLink'];

/** Returns what a link does at present: those of a creator who is paused or removed do less than their own state says. */
function stateOf({ active, affiliateStatus }: ListedLink): readonly ['good' | 'wait' | 'plain', string] {
  if (!active) return ['plain', 'Inactive'];
  switch (affiliateStatus) {
    case 'active':
      return ['good', 'Active'];
    case 'paused':
      return ['wait', 'Creator paused'];
    case 'removed':
      return ['plain', 'Creator removed'];
  }
}

function State({ link }: { readonly link: ListedLink }) {
  const [tone, text] = stateOf(link);
  return <Tag tone={tone}>{text}</Tag>;
}

const columnsOf = (
  appId: string,
  hasCreator: boolean,
  onOpen: (id: string) => void,
): readonly (Column<ListedLink> | false)[] => [
  { name: 'Link', share: 16, cell: (row) => row.slug },
  hasCreator && {
    name: 'Creator',
    share: 22,
    cell: (row) => <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>,
  },
  { name: 'Address', share: 26, dropsAt: 2, isOffPhone: true, cell: (row) => row.url },
  { name: 'State', cell: (row) => <State link={row} /> },
  { name: 'Clicks', kind: 'number', dropsAt: 1, cell: (row) => formatCount(row.clicks) },
  {
    name: 'Installs',
    kind: 'number',
    dropsAt: 1,
    isOffPhone: true,
    cell: (row) => formatCount(row.installs),
  },
  {
    name: 'Revenue',
    kind: 'number',
    isLead: true,
    cell: (row) => formatMoney(row.revenueCents),
  },
  {
    name: 'Actions',
    kind: 'actions',
    cell: (row) => (
      <Group gap={6} justify="flex-end" wrap="nowrap">
        <CopyButton text={row.url} what={`the link ${row.slug}`} />
        <Button
          variant="default"
          size="compact-sm"
          aria-label={`Open ${row.slug}`}
          className="opens"
          data-opens-row
          onClick={() => onOpen(row.id)}
        >
          Open
        </Button>
      </Group>
    ),
  },
];

/** Returns the columns of the links of an app, of which some can be hidden. */
export const linkColumns = (appId: string) => columnsOf(appId, true, () => {});

/** Links with their clicks, installs and revenue of all time; each opens with its addresses, QR code and destinations. */
export function LinkTable({
  appId,
  query,
  hasCreator = false,
  onClearFilters = () => {},
}: {
  readonly appId: string;
  readonly query: { readonly affiliateId?: string; readonly active?: boolean; readonly q?: string };
  /** Whether the rows name their creator, and `query.affiliateId` is a filter. */
  readonly hasCreator?: boolean;
  readonly onClearFilters?: () => void;
}) {
  const [openId, setOpenId] = useState<string | null>(null);
  const list = useList(
    ['links', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/links', { params: { path: { appId }, query: { ...query, ...cursor } } }),
      ),
    { idOf: ({ id }) => id, keepsRows: true },
  );
  const open = list.rows.find(({ id }) => id === openId) ?? null;
  return (
    <>
      <ListView
        list={list}
        what="links"
        isFiltered={
          query.q !== undefined ||
          query.active !== undefined ||
          (hasCreator && query.affiliateId !== undefined)
        }
        onClearFilters={onClearFilters}
        nothingYet={`${hasCreator ? 'Create a link for a creator.' : 'Create a link.'} Clicks on it are counted from then on.`}
      >
        {(rows) => (
          <DataTable
            {...(hasCreator ? { name: 'links' } : {})}
            columns={columnsOf(appId, hasCreator, setOpenId)}
            rows={rows}
            idOf={({ id }) => id}
          />
        )}
      </ListView>
      <LinkDialog appId={appId} link={open} onClose={() => setOpenId(null)} />
    </>
  );
}
