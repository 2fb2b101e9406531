import { Alert, Button, Group, Text } from '@mantine/core';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
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
      PAYOUT_KEYS.blocks(appId),
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

const STATES: Readonly<Record<State, string>> = { blocked: 'Blocked', lifted: 'Lifted' };
const TONES = { blocked: 'wait', lifted: 'good' } as const;

/** Who blocked the payouts of a creator and who lifted a block, when and why. Nothing for a creator who was never blocked. */
export function PayoutBlockHistory({
  appId,
  affiliateId,
}: {
  readonly appId: string;
  readonly affiliateId: string;
}) {
  const list = useList(
    [...PAYOUT_KEYS.blocks(appId), affiliateId],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}/payout-blocks', {
          params: { path: { appId, affiliateId }, query: { limit: 25, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id },
  );
  if (list.rows.length === 0 && list.query.error === null) return null;
  return (
    <Section id="payout-blocks" title="Blocks of payouts" hint="The creator does not see the reasons.">
      <ListView list={list} what="blocks" nothing={null}>
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">State</th>
                <th scope="col">Reason</th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ id, createdAt, state, reason, createdBy }) => (
                <tr key={id}>
                  <td>{formatInstant(createdAt)}</td>
                  <td>
                    <Tag tone={TONES[state]}>{STATES[state]}</Tag>
                  </td>
                  <td style={{ overflowWrap: 'anywhere' }}>{reason}</td>
                  <td className="quiet">{createdBy.label ?? createdBy.display}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </Section>
  );
}
