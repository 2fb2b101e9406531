import { Alert, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useRetryKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatAgo } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { AskToPay, watchRaise } from '../payouts/raise-form.tsx';

type Creator = Schemas['ListedAffiliate'];
type State = Schemas['PayoutBlock']['state'];

const REASON_LENGTH = 500;

const MEANING: Readonly<Record<State, string>> = {
  blocked:
    'No payout is made until you lift the block. The creator goes on to earn, and reads that payouts are under review, without the reason.',
  lifted: 'What is due can be paid again, with everything that became due meanwhile.',
};

function BlockForm({
  appId,
  creator,
  state,
  reason,
  onReason,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly state: State;
  readonly reason: string;
  readonly onReason: (reason: string) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const body = { state, reason: reason.trim() };
  const { key, onError } = useRetryKey(body);
  const change = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/payout-blocks', {
          params: { path: { appId, affiliateId: creator.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    ['creator', appId],
    ['creators', appId],
    ['payout-preview', appId],
    ['not-payable', appId],
    ['overview', appId],
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(undefined, {
          onSuccess: onClose,
          onError: (error) => {
            onError(error);
            watchRaise(onNotRaised)(error);
          },
        });
      }}
    >
      <Stack>
        <Text size="sm">{MEANING[state]}</Text>
        <Textarea
          label="Reason"
          description="For you and your team. The creator does not see it."
          required
          withAsterisk={false}
          maxLength={REASON_LENGTH}
          autosize
          minRows={2}
          data-autofocus
          value={reason}
          onChange={(event) => onReason(event.currentTarget.value)}
        />
        {change.error !== null && <ErrorBox error={change.error} />}
        <Group justify="flex-end">
          <Button variant="default" disabled={change.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            {...(state === 'blocked' ? { color: 'red.9' as const } : {})}
            loading={change.isPending}
            disabled={body.reason === ''}
          >
            {state === 'blocked' ? 'Block payouts' : 'Lift the block'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Blocks the payouts of a creator, or lifts the block. */
export function PayoutBlockDialog({
  appId,
  creator,
  state,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  /** Null: closed. */
  readonly state: State | null;
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const close = () => {
    setReason('');
    onClose();
  };
  return (
    <Dialog
      isOpen={state !== null}
      onClose={close}
      title={
        state === 'lifted' ? `Lift the block of ${creator.name}` : `Block the payouts of ${creator.name}`
      }
    >
      {state !== null && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <BlockForm
              appId={appId}
              creator={creator}
              state={state}
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

/** Says that payouts are blocked, since when and why. Nothing where they are not. */
export function PayoutBlockNotice({
  creator: { payoutBlock },
  onLift,
}: {
  readonly creator: Creator;
  readonly onLift: () => void;
}) {
  if (payoutBlock === undefined) return null;
  return (
    <Alert color="yellow" variant="light" title="Payouts are blocked" role="status">
      <Group justify="space-between" align="flex-end">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          Since {formatAgo(payoutBlock.since)}: {payoutBlock.reason}
        </Text>
        <Button variant="default" size="xs" onClick={onLift}>
          Lift the block …
        </Button>
      </Group>
    </Alert>
  );
}
