import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, AS_CSV, read, readCsv } from '../api/client.ts';
import { formatCountOf, formatDate, formatInstant, formatMoney } from '../format.ts';
import { NoPermission } from '../parts.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { HeadAside } from '../parts/head-aside.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import type { ManualAttribution } from './queries.ts';
import { ReassignDialog } from './reassign-dialog.tsx';
import type { Reassigning } from './reassign-dialog.tsx';

type Row = ManualAttribution;

/** The buttons of the latest attribution of a user. */
function Actions({ row, onOpen }: { readonly row: Row; readonly onOpen: (open: Reassigning) => void }) {
  const canWrite = usePermission('write');
  const { customerUserId, affiliateId } = row;
  return (
    <Group gap={6} justify="flex-end">
      <Button
        variant="default"
        size="compact-sm"
        disabled={!canWrite}
        aria-label={`Give to ${affiliateId === null ? 'a' : 'another'} creator: ${customerUserId}`}
        onClick={() => onOpen({ attribution: row, isTaken: false })}
      >
        {affiliateId === null ? 'Give to a creator …' : 'Give to another …'}
      </Button>
      {affiliateId !== null && (
        <Button
          variant="default"
          size="compact-sm"
          disabled={!canWrite}
          aria-label={`Take away ${customerUserId}`}
          onClick={() => onOpen({ attribution: row, isTaken: true })}
        >
          Take away …
        </Button>
      )}
    </Group>
  );
}

function AttributionRow({
  row,
  appId,
  isLatest,
  onOpen,
}: {
  readonly row: Row;
  readonly appId: string;
  /** Whether no later attribution of the user has replaced it. */
  readonly isLatest: boolean;
  readonly onOpen: (open: Reassigning) => void;
}) {
  const { customerUserId, affiliateId, affiliateName, effectiveFrom, payments, earnedCents } = row;
  const { reason, createdAt, createdBy } = row;
  return (
    <tr>
      <td style={{ minWidth: 130 }}>{customerUserId}</td>
      <td>
        {affiliateId === null ? (
          'Nobody'
        ) : (
          <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link>
        )}
        <Text size="xs" className="quiet" mt={2}>
          payments since <span style={{ whiteSpace: 'nowrap' }}>{formatInstant(effectiveFrom)}</span>
        </Text>
      </td>
      <td className="number" data-name="Earlier payments">
        {payments === 0 ? (
          <span className="quiet">none</span>
        ) : (
          <>
            {formatMoney(earnedCents)}
            <Text size="xs" className="quiet">
              for {formatCountOf(payments, 'payment')}
            </Text>
          </>
        )}
      </td>
      <td>
        {reason ?? <span className="quiet">removed by an erasure</span>}
        <Text size="xs" className="quiet" mt={2}>
          by {createdBy.label ?? createdBy.display} on{' '}
          <span style={{ whiteSpace: 'nowrap' }}>{formatDate(createdAt)}</span>
        </Text>
      </td>
      <td style={{ textAlign: 'right' }}>
        {isLatest ? (
          <Actions row={row} onOpen={onOpen} />
        ) : (
          <Text size="sm" className="quiet">
            Replaced later
          </Text>
        )}
      </td>
    </tr>
  );
}

/** Returns the latest row of each user, of rows from the latest to the first. */
const latestOf = (rows: readonly Row[]): ReadonlySet<Row> =>
  new Set(new Map(rows.toReversed().map((row) => [row.customerUserId, row])).values());

function Attributions({ appId }: { readonly appId: string }) {
  const canWrite = usePermission('write');
  const [open, setOpen] = useState<Reassigning | null>(null);
  const path = { appId };
  const list = useList(
    ['manual-attributions', appId],
    async (cursor) =>
      await read(api.GET('/apps/{appId}/manual-attributions', { params: { path, query: cursor } })),
    { idOf: ({ id }) => id },
  );
  return (
    <Stack gap="xs">
      <Group justify="space-between" gap="sm">
        <Text size="sm" className="quiet">
          {!canWrite && 'Changes need the permission “write”, which you do not have.'}
        </Text>
        <CsvButton
          name="manual-attributions"
          readPart={async (cursor) =>
            await readCsv(
              api.GET('/apps/{appId}/manual-attributions', { params: { path, query: cursor }, ...AS_CSV }),
            )
          }
        />
      </Group>
      <ListView
        list={list}
        what="manual attributions"
        isFiltered={false}
        onClearFilters={() => {}}
        nothingYet={
          <>
            Press “Attribute” at one of the{' '}
            <Link to={`/apps/${appId}/unattributed`}>unattributed payments</Link> when you know who brought
            the customer.
          </>
        }
      >
        {(rows) => {
          const latest = latestOf(rows);
          return (
            <table className="rows">
              <thead>
                <tr>
                  <th scope="col">Customer</th>
                  <th scope="col">Belongs to</th>
                  <th scope="col" className="number">
                    Earlier payments
                  </th>
                  <th scope="col">Reason</th>
                  <th scope="col">
                    <span className="spoken">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <AttributionRow
                    key={row.id}
                    row={row}
                    appId={appId}
                    isLatest={latest.has(row)}
                    onOpen={setOpen}
                  />
                ))}
              </tbody>
            </table>
          );
        }}
      </ListView>
      <ReassignDialog appId={appId} reassigning={open} onClose={() => setOpen(null)} />
    </Stack>
  );
}

export default function ManualPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <HeadAside>
        <Button component={Link} to={`/apps/${appId}/unattributed`} variant="default" size="compact-sm">
          Unattributed payments
        </Button>
      </HeadAside>
      {canRead ? (
        <Attributions key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="manual attributions" />
      )}
    </>
  );
}
