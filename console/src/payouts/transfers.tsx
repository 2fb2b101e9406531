import { Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { Tag } from '../parts/badges.tsx';
import { MoneyTag } from '../parts/money-state.tsx';
import { AskToPay, watchRaise } from './raise-form.tsx';
import { sayDone } from '../parts/toast.tsx';
import { useMoneyChanged } from './runs.ts';

type Transfer = Schemas['PayoutTransfer'];
type State = Transfer['state'];

const STATES: Readonly<Record<State, string>> = {
  sent: 'Sent',
  returned: 'Came back',
  withdrawn: 'Mark withdrawn',
  return_withdrawn: 'Return withdrawn',
};
const TONES = { sent: 'good', returned: 'bad', withdrawn: 'plain', return_withdrawn: 'good' } as const;

/** What each mark means, and the button that makes it. */
const MARKS: Readonly<
  Record<State, { readonly action: string; readonly meaning: string; readonly done: string }>
> = {
  sent: {
    action: 'Mark as sent',
    meaning: 'You transferred the money to the creator.',
    done: 'The payout is marked as sent.',
  },
  returned: {
    action: 'Mark as returned',
    meaning:
      'The transfer came back. The commissions stay paid here: transfer the money again, then mark it as sent.',
    done: 'The payout is marked as returned.',
  },
  withdrawn: {
    action: 'Withdraw the mark',
    meaning: 'The mark before was a mistake: the money was not sent. Both marks stay visible.',
    done: 'The mark is withdrawn.',
  },
  return_withdrawn: {
    action: 'Withdraw the return',
    meaning: 'The mark before was a mistake: the money did not come back. Both marks stay visible.',
    done: 'The return is withdrawn.',
  },
};

/** The marks that can follow the latest one, as the service accepts them. */
const NEXT: Readonly<Record<State, readonly State[]>> = {
  sent: ['returned', 'withdrawn'],
  returned: ['sent', 'return_withdrawn'],
  withdrawn: ['sent'],
  return_withdrawn: ['returned', 'withdrawn'],
};
const nextMarks = (latest: Transfer | undefined) => NEXT[latest?.state ?? 'withdrawn'];

/** Says where the money of a payout is, and since when. A mark that was withdrawn says nothing. */
export function MoneyOfPayout({ money }: Pick<Schemas['Payout'], 'money'>) {
  return (
    <>
      <MoneyTag said={money?.state ?? null} /> {money !== null && formatInstant(money.statedAt)}
    </>
  );
}

const filled = (text: string) => (text.trim() === '' ? undefined : text.trim());

const EMPTY = { method: '', reference: '', note: '' };

function MarkForm({
  appId,
  payout,
  state,
  text: { method, reference, note },
  onText,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly payout: Schemas['PayoutWithTransfers'];
  readonly state: State;
  readonly text: typeof EMPTY;
  readonly onText: (changed: Partial<typeof EMPTY>) => void;
  /** The session may no longer pay. */
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const body = {
    state,
    ...given({ method: filled(method), reference: filled(reference), note: filled(note) }),
  };
  const key = useIdempotencyKey(body);
  const moneyChanged = useMoneyChanged(appId);
  const mark = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/payouts/{payoutId}/transfers', {
          params: { path: { appId, payoutId: payout.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
  );
  const errors = useFieldErrors(mark.error, { method: 'Method', reference: 'Reference', note: 'Note' });
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        mark.mutate(undefined, {
          onSuccess: () => {
            // Lists of payouts say where the money is, too.
            void moneyChanged();
            sayDone(MARKS[state].done);
            onClose();
          },
          onError: watchRaise(onNotRaised),
        });
      }}
    >
      <Stack>
        <Text size="sm">
          {MARKS[state].meaning} The payout is {formatMoney(payout.totalCents)} to {payout.affiliateName}. The
          mark names you, or the key that you entered. All fields are optional.
        </Text>
        {(state === 'sent' || state === 'returned') && (
          <>
            <TextInput
              label="Method"
              placeholder="Such as bank transfer"
              maxLength={200}
              value={method}
              {...errors.at('method')}
              onChange={(event) => onText({ method: event.currentTarget.value })}
            />
            <TextInput
              label="Reference"
              description="Of the bank or the payment service."
              maxLength={200}
              value={reference}
              {...errors.at('reference')}
              onChange={(event) => onText({ reference: event.currentTarget.value })}
            />
          </>
        )}
        <Textarea
          label="Note"
          maxLength={1000}
          autosize
          minRows={2}
          value={note}
          {...errors.at('note')}
          onChange={(event) => onText({ note: event.currentTarget.value })}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={mark.isPending}>
            {MARKS[state].action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Asks for a key that may pay, then for the mark. */
function MarkSteps(props: Pick<Parameters<typeof MarkForm>[0], 'appId' | 'payout' | 'state' | 'onClose'>) {
  const [text, setText] = useState(EMPTY);
  return (
    <AskToPay onCancel={props.onClose}>
      {(onNotRaised) => (
        <MarkForm
          {...props}
          text={text}
          onText={(changed) => setText((before) => ({ ...before, ...changed }))}
          onNotRaised={onNotRaised}
        />
      )}
    </AskToPay>
  );
}

/** What was stated about the money of a payout, and the buttons that state more. */
export function Transfers({
  appId,
  payout,
}: {
  readonly appId: string;
  readonly payout: Schemas['PayoutWithTransfers'];
}) {
  const [state, setState] = useState<State | null>(null);
  const { transfers } = payout;
  return (
    <Section
      id="transfers"
      title="Transfer of the money"
      hint="The service moves no money. Mark here what you did, so that everybody knows."
      aside={
        <Group gap="xs">
          {nextMarks(transfers[0]).map((next) => (
            <Button key={next} variant="default" onClick={() => setState(next)}>
              {MARKS[next].action} …
            </Button>
          ))}
        </Group>
      }
    >
      <div className="surface">
        {transfers.length === 0 ? (
          <Text size="sm" className="quiet" p="lg">
            Nobody has marked the money as sent.
          </Text>
        ) : (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Mark</th>
                <th scope="col">Method and reference</th>
                <th scope="col">Note</th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {transfers.map((row) => (
                <tr key={row.id}>
                  <td>{formatInstant(row.createdAt)}</td>
                  <td>
                    <Tag tone={TONES[row.state]}>{STATES[row.state]}</Tag>
                  </td>
                  <td>{[row.method, row.reference].filter((part) => part !== null).join(', ')}</td>
                  <td style={{ overflowWrap: 'anywhere' }}>{row.note}</td>
                  <td className="quiet">{row.createdBy.label ?? row.createdBy.display}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      <Dialog
        isOpen={state !== null}
        onClose={() => setState(null)}
        title={state === null ? '' : MARKS[state].action}
      >
        {state !== null && (
          <MarkSteps appId={appId} payout={payout} state={state} onClose={() => setState(null)} />
        )}
      </Dialog>
    </Section>
  );
}
