import { Alert, Button, Group, Text } from '@mantine/core';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo } from '../format.ts';
import { PAYOUT_KEYS } from '../payouts/keys.ts';
import { ReasonDialog } from './reason-dialog.tsx';

type Creator = Schemas['ListedAffiliate'];
type State = Schemas['PayoutBlock']['state'];

/** What the dialog says of each state, in which `title` is followed by the name of the creator. */
const WORDS = {
  blocked: {
    title: 'Block the payouts of',
    meaning:
      'No payout is made until you lift the block. The creator goes on to earn, and reads that payouts are under review, without the reason.',
    action: 'Block payouts',
    color: 'red.9',
  },
  lifted: {
    title: 'Lift the block of',
    meaning: 'What is due can be paid again, with everything that became due meanwhile.',
    action: 'Lift the block',
  },
} as const;

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
  const change = state !== null && {
    ...WORDS[state],
    title: `${WORDS[state].title} ${creator.name}`,
    description: 'For you and your team. The creator does not see it.',
    stale: [
      ['creator', appId],
      ['creators', appId],
      PAYOUT_KEYS.preview(appId),
      PAYOUT_KEYS.notPayable(appId),
      ['overview', appId],
    ],
    send: async (reason: string, idempotencyKey: string) =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/payout-blocks', {
          params: {
            path: { appId, affiliateId: creator.id },
            header: { 'Idempotency-Key': idempotencyKey },
          },
          body: { state, reason },
        }),
      ),
  };
  return <ReasonDialog change={change || null} onClose={onClose} />;
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
