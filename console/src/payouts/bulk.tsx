import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKeys } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { Failures, forEachRow } from '../parts/each-row.tsx';
import { sayDone } from '../parts/toast.tsx';
import { DownloadButton } from './csv-download.tsx';
import { saveOneCsv } from './csv-file.ts';
import { AskToPay, isNotRaised, watchRaise } from './raise-form.tsx';
import { useMoneyChanged } from './runs.ts';

type Payout = Schemas['Payout'];

const nameOf = ({ affiliateName, totalCents, createdAt }: Payout) =>
  `${affiliateName}, ${formatMoney(totalCents)} of ${formatInstant(createdAt)}`;

/** What can be done with the payouts that are selected. */
export function PayoutsBulk({
  appId,
  selected,
  onMark,
}: {
  readonly appId: string;
  readonly selected: readonly Payout[];
  /** Opens the form that marks them as sent. */
  readonly onMark: () => void;
}) {
  const total = selected.reduce((sum, { totalCents }) => sum + totalCents, 0);
  return (
    <>
      <Text size="sm" className="quiet">
        {formatMoney(total)}
      </Text>
      <Button variant="default" size="compact-sm" onClick={onMark}>
        Mark as sent …
      </Button>
      <DownloadButton
        save={async () => await saveOneCsv(appId, selected)}
        inRow={`One CSV of ${formatCountOf(selected.length, 'payout')}`}
        text="One CSV"
      />
    </>
  );
}

/** What a form holds that is closed while it asks for a key. */
interface Entered {
  readonly reference: string;
  /** The payouts that are not marked yet, and why those that failed are not. */
  readonly left: readonly Payout[];
  readonly failed: readonly { readonly row: Payout; readonly why: string }[];
  /** How many passes had refusals. The service returns a stored refusal for the same key, so the next pass has others. */
  readonly refusals: number;
}

/**
 * Marks a payout as sent. Returns why it stays as it is, or null. One whose money came back stays so: a mark would say that it was sent
 * again, and no run would send it.
 */
async function markSent(
  appId: string,
  payoutId: string,
  body: { readonly state: 'sent'; readonly reference?: string },
  key: string,
): Promise<string | null> {
  try {
    const path = { appId, payoutId };
    const { money } = await read(api.GET('/apps/{appId}/payouts/{payoutId}', { params: { path } }));
    if (money?.state === 'returned')
      return 'Its money came back. If you have sent it again, say so on the page of the payout.';
    const params = { path, header: { 'Idempotency-Key': key } };
    await read(api.POST('/apps/{appId}/payouts/{payoutId}/transfers', { params, body }));
    return null;
  } catch (error) {
    if (error instanceof Problem && error.code === 'transfer_not_possible')
      return 'It is marked as sent already.';
    throw error;
  }
}

function MarkForm({
  appId,
  entered: { reference, left, failed, refusals },
  keyOf,
  onEntered,
  onNotRaised,
  onBusy,
  onDone,
  onClose,
}: {
  readonly appId: string;
  readonly entered: Entered;
  readonly keyOf: (body: object) => string;
  readonly onEntered: (changed: Partial<Entered>) => void;
  readonly onNotRaised: () => void;
  readonly onBusy: (isBusy: boolean) => void;
  readonly onDone: (done: readonly Payout[]) => void;
  readonly onClose: () => void;
}) {
  const moneyChanged = useMoneyChanged(appId);
  const body = {
    state: 'sent' as const,
    ...given({ reference: reference.trim() === '' ? undefined : reference.trim() }),
  };
  const mark = useChange(
    async () =>
      await forEachRow(
        left,
        async ({ id }) => await markSent(appId, id, body, keyOf({ id, body, refusals })),
        isNotRaised,
      ),
  );
  const send = () => {
    onBusy(true);
    mark.mutate(undefined, {
      onSettled: () => {
        onBusy(false);
        void moneyChanged();
      },
      onSuccess: (outcomes) => {
        onDone(outcomes.done);
        onEntered({
          left: outcomes.failed.map(({ row }) => row),
          failed: outcomes.failed,
          refusals: refusals + (outcomes.hasRefusals ? 1 : 0),
        });
        const count = outcomes.done.length;
        if (count > 0)
          sayDone(`${formatCountOf(count, 'payout')} ${count === 1 ? 'is' : 'are'} marked as sent.`);
        if (outcomes.failed.length === 0) onClose();
      },
      onError: watchRaise(onNotRaised),
    });
  };
  const total = left.reduce((sum, { totalCents }) => sum + totalCents, 0);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Stack>
        {failed.length === 0 ? (
          <Text size="sm">
            You transferred {formatMoney(total)} in {formatCountOf(left.length, 'payout')}. A payout that is
            marked already, as sent or as come back, is left as it is, and named here.
          </Text>
        ) : (
          <Failures
            title={`${formatCountOf(failed.length, 'payout')} not marked`}
            failed={failed}
            nameOf={nameOf}
          />
        )}
        <TextInput
          label="Reference"
          description="Of the bank or the payment service, for all of them. May be empty."
          maxLength={200}
          data-autofocus
          value={reference}
          onChange={(event) => onEntered({ reference: event.currentTarget.value })}
        />
        {mark.error !== null && <ErrorBox error={mark.error} />}
        <Group justify="flex-end">
          <Button variant="default" disabled={mark.isPending} onClick={onClose}>
            {failed.length === 0 ? 'Cancel' : 'Close'}
          </Button>
          <Button type="submit" loading={mark.isPending}>
            {failed.length === 0 ? 'Mark as sent' : 'Try these again'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function MarkSteps({
  payouts,
  onClose,
  ...form
}: Pick<Parameters<typeof MarkForm>[0], 'appId' | 'onBusy' | 'onDone' | 'onClose'> & {
  readonly payouts: readonly Payout[];
}) {
  const [entered, setEntered] = useState<Entered>({ reference: '', left: payouts, failed: [], refusals: 0 });
  const keyOf = useIdempotencyKeys();
  return (
    <AskToPay onCancel={onClose}>
      {(onNotRaised) => (
        <MarkForm
          {...form}
          entered={entered}
          keyOf={keyOf}
          onEntered={(changed) => setEntered((before) => ({ ...before, ...changed }))}
          onNotRaised={onNotRaised}
          onClose={onClose}
        />
      )}
    </AskToPay>
  );
}

/** Marks several payouts as sent, and says of each that was not marked why. It stays open while it works. Null for none. */
export function MarkDialog({
  appId,
  payouts,
  onDone,
  onClose,
}: {
  readonly appId: string;
  readonly payouts: readonly Payout[] | null;
  /** Called with the payouts that are marked now. */
  readonly onDone: (done: readonly Payout[]) => void;
  readonly onClose: () => void;
}) {
  const [isBusy, setIsBusy] = useState(false);
  return (
    <Dialog isOpen={payouts !== null} isHeld={isBusy} onClose={onClose} title="Mark payouts as sent">
      {payouts !== null && (
        <MarkSteps appId={appId} payouts={payouts} onBusy={setIsBusy} onDone={onDone} onClose={onClose} />
      )}
    </Dialog>
  );
}
