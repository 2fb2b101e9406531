import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatMoney } from '../format.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { DollarField } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';
import { AskToPay, watchRaise } from '../payouts/raise-form.tsx';
import { ENTRY_CATEGORIES } from '../words.ts';
import { ReasonDialog, ReasonField } from './reason-dialog.tsx';
import { sayDone } from '../parts/toast.tsx';

export type Entry = Schemas['Entry'];
type Category = Entry['category'];
export type Creator = Pick<Schemas['ListedAffiliate'], 'id' | 'name'>;

const CENTS = 100;

/** What a form holds until it was added, also while it asks for a key. */
interface Draft {
  /** The same for each attempt, so that the service adds it once. */
  readonly externalId: string;
  readonly direction: 'add' | 'deduct';
  readonly dollars: Entered;
  readonly category: Category;
  readonly reason: string;
  /** A date, or empty for now. */
  readonly due: string;
}

/** What a new entry of a direction is for until something else is chosen: nothing that only some deductions are. */
const FIRST_CATEGORY: Readonly<Record<Draft['direction'], Category>> = { add: 'bonus', deduct: 'other' };

const newDraft = (): Draft => ({
  externalId: newIdempotencyKey(),
  direction: 'add',
  dollars: '',
  category: FIRST_CATEGORY.add,
  reason: '',
  due: '',
});

/** Returns the start of a day in the time zone of the browser, epoch ms. Undefined for today and for no day. */
function dueAtOf(date: string): number | undefined {
  const start = new Date(`${date}T00:00:00`);
  return date === '' || start.toDateString() === new Date().toDateString() ? undefined : start.getTime();
}

/** The categories of a direction. */
const CATEGORIES: Readonly<Record<Draft['direction'], readonly Category[]>> = {
  add: ['bonus', 'fixed_fee', 'opening_balance', 'write_off', 'other'],
  deduct: ['unreported_refund', 'opening_balance', 'write_off', 'other'],
};

/** Whether the service may have done what a failed call asked for. */
const isLost = (error: Error | null): boolean =>
  error !== null && (!(error instanceof Problem) || error.status === 0 || error.status >= 500);

/** The queries whose answers an entry changes. */
const staleAfterEntry = (appId: string) =>
  [
    ['entries', appId],
    ['commissions', appId],
    ['creator', appId],
    ['overview', appId],
    ['overview-series', appId],
  ] as const;

const DESCRIPTION = 'The creator reads it. Name no customer.';

/** Adds what a draft says. Null if an attempt whose answer was lost has added it before. */
const useAddEntry = (appId: string, creator: Creator) =>
  useChange(
    async (body: Schemas['NewEntry']): Promise<Entry | null> => {
      try {
        return await read(
          api.POST('/apps/{appId}/affiliates/{affiliateId}/entries', {
            params: { path: { appId, affiliateId: creator.id } },
            body,
          }),
        );
      } catch (error) {
        if (error instanceof Problem && error.code === 'external_id_taken') return null;
        throw error;
      }
    },
    ...staleAfterEntry(appId),
  );

function EntryForm({
  creator,
  draft,
  add,
  onDraft,
  onNotRaised,
  onClose,
}: {
  readonly creator: Creator;
  readonly draft: Draft;
  readonly add: ReturnType<typeof useAddEntry>;
  readonly onDraft: (changed: Partial<Draft>) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const { externalId, direction, dollars, category, reason, due } = draft;
  const cents = Math.round(Number(dollars) * CENTS);
  const body = {
    amountCents: direction === 'add' ? cents : -cents,
    category,
    reason: reason.trim(),
    externalId,
    ...given({ dueAt: dueAtOf(due) }),
  };
  const errors = useFieldErrors(add.error, {
    amountCents: 'Amount',
    category: 'For',
    reason: 'Reason',
    dueAt: 'Due',
  });
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(body, {
          onSuccess: (entry) => {
            if (entry === null) return;
            sayDone(`${formatMoney(entry.amountCents)} for ${creator.name} is in the ledger.`);
            onClose();
          },
          onError: watchRaise(() => {
            add.reset();
            onNotRaised();
          }),
        });
      }}
    >
      <Stack>
        <NativeSelect
          label="What to do"
          value={direction}
          onChange={(event) => {
            const next = event.currentTarget.value === 'add' ? 'add' : 'deduct';
            onDraft({ direction: next, category: FIRST_CATEGORY[next] });
          }}
        >
          <option value="add">Add to what {creator.name} earned</option>
          <option value="deduct">Deduct from what {creator.name} earned</option>
        </NativeSelect>
        <DollarField
          label="Amount"
          description="In US dollars."
          required
          withAsterisk={false}
          min={0.01}
          data-autofocus
          value={dollars}
          {...errors.at('amountCents')}
          onChange={(value) => onDraft({ dollars: value })}
        />
        <NativeSelect
          label="For"
          value={category}
          {...errors.at('category')}
          onChange={(event) => onDraft({ category: event.currentTarget.value as Category })}
        >
          {CATEGORIES[direction].map((name) => (
            <option key={name} value={name}>
              {ENTRY_CATEGORIES[name]}
            </option>
          ))}
        </NativeSelect>
        <ReasonField
          description={DESCRIPTION}
          value={reason}
          field={errors.at('reason')}
          onChange={(text) => onDraft({ reason: text })}
        />
        <TextInput
          label="Due"
          description="Payouts from this day on have it. Empty: now."
          type="date"
          value={due}
          {...errors.at('dueAt')}
          onChange={(event) => onDraft({ due: event.currentTarget.value })}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" disabled={add.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={add.isPending} disabled={!(cents > 0) || reason.trim() === ''}>
            {direction === 'add' ? 'Add' : 'Deduct'} {cents >= 0 && formatMoney(cents)}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Adds to what a creator earned, or deducts from it. A draft whose answer was lost is kept for the next attempt. */
export function NewEntryDialog({
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
  const [draft, setDraft] = useState(newDraft);
  const add = useAddEntry(appId, creator);
  const close = () => {
    // An attempt whose answer was lost may have added it: the next one has the same external id.
    if (!isLost(add.error)) setDraft(newDraft());
    add.reset();
    onClose();
  };
  return (
    <Dialog
      isOpen={isOpen}
      isHeld={add.isPending}
      isEdited={add.data === undefined && (draft.dollars !== '' || draft.reason !== '')}
      onClose={close}
      title={`Bonus or deduction for ${creator.name}`}
    >
      {isOpen && add.data === null && (
        <Stack>
          <Text size="sm" role="status">
            The answer to an earlier attempt was lost, and that attempt has added it. The list shows what was
            added. Nothing was added twice.
          </Text>
          <Group justify="flex-end">
            <Button onClick={close}>Done</Button>
          </Group>
        </Stack>
      )}
      {isOpen && add.data !== null && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <EntryForm
              creator={creator}
              draft={draft}
              add={add}
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

/** Undoes `entry`. Closed without one. */
export function UndoDialog({
  appId,
  entry,
  onClose,
}: {
  readonly appId: string;
  readonly entry: Entry | null;
  readonly onClose: () => void;
}) {
  const change = entry !== null && {
    title: `Undo ${formatMoney(entry.amountCents)}: ${entry.reason}`,
    meaning: `${formatMoney(-entry.amountCents)} is added to the ledger, due at the same time, so that both net to nothing. Both rows stay visible. An undo cannot be undone.`,
    description: DESCRIPTION,
    action: 'Undo',
    color: 'red.9' as const,
    stale: staleAfterEntry(appId),
    send: async (reason: string, idempotencyKey: string) =>
      await read(
        api.POST('/apps/{appId}/entries/{entryId}/undo', {
          params: { path: { appId, entryId: entry.id }, header: { 'Idempotency-Key': idempotencyKey } },
          body: { reason },
        }),
      ),
  };
  return <ReasonDialog change={change || null} onClose={onClose} />;
}
