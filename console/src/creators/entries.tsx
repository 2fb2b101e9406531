import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { COMMISSION_TONES, shownStatus } from '../commissions/commission-table.tsx';
import { formatAgo, formatInstant, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ENTRY_CATEGORIES } from '../words.ts';
import { NewEntryDialog, UndoDialog } from './entry-dialogs.tsx';
import type { Creator, Entry } from './entry-dialogs.tsx';
import { COMMISSION_STATUSES } from '../parts/money-state.tsx';

function Row({ entry, onUndo }: { readonly entry: Entry; readonly onUndo: () => void }) {
  const status = shownStatus(entry);
  const isUndo = entry.undoesEntryId !== null;
  return (
    <tr>
      <td>{formatInstant(entry.createdAt)}</td>
      <td style={{ overflowWrap: 'anywhere' }}>
        {entry.reason}
        <Text size="xs" className="quiet">
          {ENTRY_CATEGORIES[entry.category]}
          {isUndo ? ', undone' : ''} · by {entry.createdBy.label ?? entry.createdBy.display}
        </Text>
      </td>
      <td>
        <Tag tone={COMMISSION_TONES[status]}>{COMMISSION_STATUSES[status]}</Tag>
        {status === 'pending' && (
          <Text size="xs" className="quiet">
            due {formatAgo(entry.dueAt)}
          </Text>
        )}
      </td>
      <td className="number lead">{formatMoney(entry.amountCents)}</td>
      <td style={{ textAlign: 'right' }}>
        {entry.undoneByEntryId !== null && (
          <Text size="sm" className="quiet">
            Undone
          </Text>
        )}
        {!isUndo && entry.undoneByEntryId === null && (
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Undo ${formatMoney(entry.amountCents)}: ${entry.reason}`}
            onClick={onUndo}
          >
            Undo …
          </Button>
        )}
      </td>
    </tr>
  );
}

/** What people added for a creator, or deducted, and the buttons that add and undo. */
export function Entries({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const [isAdding, setIsAdding] = useState(false);
  const [undoing, setUndoing] = useState<Entry | null>(null);
  const list = useList(
    ['entries', appId, creator.id],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/entries', {
          params: { path: { appId }, query: { affiliateId: creator.id, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id },
  );
  return (
    <Section
      id="entries"
      title="Bonuses and deductions"
      hint="What you add or deduct yourself. It nets with the commissions in the next payout."
      aside={
        <Button variant="default" size="xs" onClick={() => setIsAdding(true)}>
          Add or deduct
        </Button>
      }
    >
      <ListView
        list={list}
        what="bonuses and deductions"
        isFiltered={false}
        onClearFilters={() => {}}
        nothingYet="Add a retainer or a prize, or deduct a refund that no provider reported."
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Added</th>
                <th scope="col">For</th>
                <th scope="col">Status</th>
                <th scope="col" className="number">
                  Amount
                </th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((entry) => (
                <Row key={entry.id} entry={entry} onUndo={() => setUndoing(entry)} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      <NewEntryDialog appId={appId} creator={creator} isOpen={isAdding} onClose={() => setIsAdding(false)} />
      <UndoDialog appId={appId} entry={undoing} onClose={() => setUndoing(null)} />
    </Section>
  );
}
