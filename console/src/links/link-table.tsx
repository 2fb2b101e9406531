import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import { formatCount, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { ListEnd, ListView, MOST_FOUND, useList } from '../parts/list.tsx';
import { LinkDialog } from './link-dialog.tsx';

/** Links with their clicks, installs and revenue of all time; each opens with its addresses, QR code and destinations. */
export function LinkTable({
  appId,
  query,
  text,
  hasCreator = false,
  onClearFilters = () => {},
}: {
  readonly appId: string;
  readonly query: { readonly affiliateId?: string; readonly active?: boolean };
  /** What the slug begins with. The other filters then do not apply. */
  readonly text?: string | undefined;
  /** Whether the rows name their creator, and `query.affiliateId` is a filter. */
  readonly hasCreator?: boolean;
  readonly onClearFilters?: () => void;
}) {
  const [openId, setOpenId] = useState<string | null>(null);
  const list = useList(
    ['links', appId, text ?? '', query],
    async (cursor) => {
      if (text === undefined) {
        return await read(
          api.GET('/apps/{appId}/links', { params: { path: { appId }, query: { ...query, ...cursor } } }),
        );
      }
      const { links } = await read(
        api.GET('/apps/{appId}/search', { params: { path: { appId }, query: { q: text } } }),
      );
      return { items: links, nextCursor: null };
    },
    { idOf: ({ id }) => id },
  );
  const open = list.rows.find(({ id }) => id === openId) ?? null;
  return (
    <>
      <ListView
        list={list}
        what="links"
        isFiltered={
          text !== undefined || query.active !== undefined || (hasCreator && query.affiliateId !== undefined)
        }
        onClearFilters={onClearFilters}
        nothingYet={`${hasCreator ? 'Create a link for a creator.' : 'Create a link.'} Clicks on it are counted from then on.`}
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Link</th>
                {hasCreator && <th scope="col">Creator</th>}
                <th scope="col">State</th>
                <th scope="col" className="number">
                  Clicks
                </th>
                <th scope="col" className="number">
                  Installs
                </th>
                <th scope="col" className="number">
                  Revenue
                </th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>
                    <Text size="sm" fw={500}>
                      {row.slug}
                    </Text>
                    <Text size="xs" className="quiet">
                      {row.url}
                    </Text>
                  </td>
                  {hasCreator && (
                    <td>
                      <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>
                    </td>
                  )}
                  <td>
                    <Tag tone={row.active ? 'good' : 'plain'}>{row.active ? 'Active' : 'Inactive'}</Tag>
                  </td>
                  <td className="number" data-name="Clicks">
                    {formatCount(row.clicks)}
                  </td>
                  <td className="number" data-name="Installs">
                    {formatCount(row.installs)}
                  </td>
                  <td className="number lead" data-name="Revenue">
                    {formatMoney(row.revenueCents)}
                  </td>
                  <td style={{ textAlign: 'right' }}>
                    <Button
                      variant="default"
                      size="compact-sm"
                      aria-label={`Open ${row.slug}`}
                      onClick={() => setOpenId(row.id)}
                    >
                      Open
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      {text !== undefined && list.rows.length >= MOST_FOUND && (
        <ListEnd>The first {MOST_FOUND}: enter more of the link code</ListEnd>
      )}
      <LinkDialog appId={appId} link={open} onClose={() => setOpenId(null)} />
    </>
  );
}
