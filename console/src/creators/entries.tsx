import { Button, Group, NativeSelect, NumberInput, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { COMMISSION_TONES, shownStatus, STATUSES } from '../commissions/commission-table.tsx';
import { Dialog } from '../dialog.tsx';
import { formatAgo, formatInstant, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { AskToPay } from '../payouts/raise-form.tsx';
import { ENTRY_CATEGORIES } from '../words.ts';

type Entry = Schemas['Entry'];
type Category = Entry['category'];
type Creator = Pick<Schemas['ListedAffiliate'], 'id' | 'name'>;

const CENTS = 100;
const REASON_LENGTH = 500;

/** What a form holds until it is sent, also while it asks for a key. */
interface Draft {
  readonly direction: 'add' | 'deduct';
  readonly dollars: number | string;
  readonly category: Category;
  readonly reason: string;
  /** A date, or empty for now. */
  readonly due: string;
}

const EMPTY: Draft = { direction: 'add', dollars: '', category: 'bonus', reason: '', due: '' };

const DAY_MS = 86_400_000;

/** Returns the start of a day in the time zone of the browser, epoch ms. Undefined for today and for no day. */
function dueAtOf(date: string): number | undefined {
  const start = new Date(`${date}T00:00:00`).getTime();
  const sinceStart = Date.now() - start;
  return Number.isNaN(start) || (sinceStart >= 0 && sinceStart < DAY_MS) ? undefined : start;
}

/** Calls `onNotRaised` if the session may not pay any more. */
const watchRaise = (onNotRaised: () => void) => (error: Error) => {
  if (error instanceof Problem && error.code === 'session_not_raised') onNotRaised();
};

function ReasonField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (reason: string) => void;
}) {
  return (
    <Textarea
      label="Reason"
      description="The creator reads it. Name no customer."
      required
      withAsterisk={false}
      maxLength={REASON_LENGTH}
      autosize
      minRows={2}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function EntryForm({
  appId,
  creator,
  draft,
  onDraft,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly draft: Draft;
  readonly onDraft: (changed: Partial<Draft>) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const { direction, dollars, category, reason, due } = draft;
  const cents = Math.round(Number(dollars) * CENTS);
  const body = {
    amountCents: direction === 'add' ? cents : -cents,
    category,
    reason: reason.trim(),
    ...given({ dueAt: dueAtOf(due) }),
  };
  const key = useIdempotencyKey(body);
  const add = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/entries', {
          params: { path: { appId, affiliateId: creator.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    ['entries', appId],
    ['commissions', appId],
    ['creator', appId],
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(undefined, { onSuccess: onClose, onError: watchRaise(onNotRaised) });
      }}
    >
      <Stack>
        <NativeSelect
          label="What to do"
          value={direction}
          onChange={(event) => onDraft({ direction: event.currentTarget.value === 'add' ? 'add' : 'deduct' })}
        >
          <option value="add">Add to what {creator.name} earned</option>
          <option value="deduct">Deduct from what {creator.name} earned</option>
        </NativeSelect>
        <NumberInput
          label="Amount"
          description="In US dollars."
          required
          withAsterisk={false}
          min={0.01}
          decimalScale={2}
          fixedDecimalScale
          allowNegative={false}
          prefix="$"
          data-autofocus
          value={dollars}
          onChange={(value) => onDraft({ dollars: value })}
        />
        <NativeSelect
          label="For"
          value={category}
          onChange={(event) => onDraft({ category: event.currentTarget.value as Category })}
        >
          {Object.entries(ENTRY_CATEGORIES).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </NativeSelect>
        <ReasonField value={reason} onChange={(text) => onDraft({ reason: text })} />
        <TextInput
          label="Due"
          description="The next payout after this day has it. Empty: now."
          type="date"
          value={due}
          onChange={(event) => onDraft({ due: event.currentTarget.value })}
        />
        {add.error !== null && <ErrorBox error={add.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={add.isPending} disabled={cents === 0 || reason.trim() === ''}>
            {direction === 'add' ? 'Add' : 'Deduct'} {formatMoney(cents)}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function UndoForm({
  appId,
  entry,
  reason,
  onReason,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly entry: Entry;
  readonly reason: string;
  readonly onReason: (reason: string) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const body = { reason: reason.trim() };
  const key = useIdempotencyKey(body);
  const undo = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/entries/{entryId}/undo', {
          params: { path: { appId, entryId: entry.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    ['entries', appId],
    ['commissions', appId],
    ['creator', appId],
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        undo.mutate(undefined, { onSuccess: onClose, onError: watchRaise(onNotRaised) });
      }}
    >
      <Stack>
        <Text size="sm">
          {formatMoney(-entry.amountCents)} is added to the ledger, due at the same time, so that both net to
          nothing. Both rows stay visible. An undo cannot be undone.
        </Text>
        <ReasonField value={reason} onChange={onReason} />
        {undo.error !== null && <ErrorBox error={undo.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color="red.9" loading={undo.isPending} disabled={body.reason === ''}>
            Undo
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function NewEntryDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(EMPTY);
  const close = () => {
    setDraft(EMPTY);
    onClose();
  };
  return (
    <Dialog isOpen={isOpen} onClose={close} title={`Bonus or deduction for ${creator.name}`}>
      {isOpen && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <EntryForm
              appId={appId}
              creator={creator}
              draft={draft}
              onDraft={(changed) => setDraft((before) => ({ ...before, ...changed }))}
              onNotRaised={onNotRaised}
              onClose={close}
            />
          )}
        </AskToPay>
      )}
    </Dialog>
  );
}

function UndoDialog({
  appId,
  entry,
  onClose,
}: {
  readonly appId: string;
  readonly entry: Entry | null;
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const close = () => {
    setReason('');
    onClose();
  };
  return (
    <Dialog
      isOpen={entry !== null}
      onClose={close}
      title={entry === null ? '' : `Undo ${formatMoney(entry.amountCents)}: ${entry.reason}`}
    >
      {entry !== null && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <UndoForm
              appId={appId}
              entry={entry}
              reason={reason}
              onReason={setReason}
              onNotRaised={onNotRaised}
              onClose={close}
            />
          )}
        </AskToPay>
      )}
    </Dialog>
  );
}

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
        <Tag tone={COMMISSION_TONES[status]}>{STATUSES[status]}</Tag>
        {status === 'pending' && (
          <Text size="xs" className="quiet">
            due {formatAgo(entry.dueAt)}
          </Text>
        )}
      </td>
      <td className="number">{formatMoney(entry.amountCents)}</td>
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
