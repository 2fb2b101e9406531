import { Anchor, Group, Text } from '@mantine/core';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { formatMoney } from '../format.ts';
import { oneOf } from '../parts/filters.ts';
import { EVENT_KINDS } from '../words.ts';
import { eventTitle } from './event-title.ts';

type Step = Schemas['Explanation']['steps'][number];

function find<N extends Step['step']>(steps: readonly Step[], name: N) {
  return steps.find((step): step is Extract<Step, { readonly step: N }> => step.step === name);
}

/** The decisions that a later event, a rate or a moment replaces. */
const UNDECIDED: readonly string[] = ['processing', 'waiting_for_payment', 'missing_exchange_rate'];

/** Names an event by what was read of it. */
export function titleOf(steps: readonly Step[]): string {
  const read = find(steps, 'normalize');
  const kind = oneOf(Object.keys(EVENT_KINDS) as Schemas['Event']['kind'][], read?.decision);
  if (read === undefined || kind === undefined) return 'Event';
  return eventTitle(kind, read.facts.amountMinor, read.facts.currency);
}

/** Returns the reason of how an event ended: that of its last step. */
export const reasonOf = (steps: readonly Step[]): string | undefined => steps.at(-1)?.explanation;

/** What an event brought about, with its reason, before the steps that led to it. */
export function Verdict({
  appId,
  eventId,
  steps,
}: {
  readonly appId: string;
  readonly eventId: string;
  readonly steps: readonly Step[];
}) {
  // A payment also has the rows of its refunds, which are other events.
  const rows = find(steps, 'write_commission')?.facts.commissions ?? [];
  const own = rows.filter((row) => row.eventId === eventId);
  const sumOf = (some: typeof rows) => some.reduce((sum, row) => sum + row.amountCents, 0);
  const [cents, rest] = [sumOf(own), sumOf(rows)];
  const isUndecided = steps.some(({ decision }) => UNDECIDED.includes(decision));
  const attributed = find(steps, 'attribute');
  const creators = new Map(
    (attributed?.facts.users ?? []).flatMap(({ attribution }) =>
      attribution?.decided === true ? [[attribution.affiliateId, attribution.affiliateName]] : [],
    ),
  );
  // Why its code did not count says more than that its user is unknown.
  const hasOpenCode = own.length === 0 && (attributed?.facts.codes ?? []).length > 0;
  const reason = hasOpenCode ? attributed?.explanation : reasonOf(steps);
  const userId = find(steps, 'normalize')?.facts.customerUserId;
  // The ledger has the user who decided, whom another event may have named.
  const earner = (attributed?.facts.users ?? []).find(({ attribution }) => attribution?.decided === true);
  const payoutIds = [...new Set(own.flatMap(({ payoutId }) => payoutId ?? []))];
  return (
    <section className="surface verdict" aria-label="What it brought about">
      <Text fw={600} fz={20}>
        {own.length > 0 ? formatMoney(cents) : isUndecided ? 'Not decided yet' : 'No commission'}
        {own.length > 0 && creators.size > 0 && (
          <>
            {cents < 0 ? ' from ' : ' for '}
            {[...creators].map(([id, name], index) => (
              <span key={id}>
                {index > 0 && ', '}
                <Anchor component={Link} to={`/apps/${appId}/creators/${id}`} inherit>
                  <bdi>{name}</bdi>
                </Anchor>
              </span>
            ))}
          </>
        )}
      </Text>
      <Text size="sm" mt={4}>
        {reason}
        {own.length > 0 &&
          rest !== cents &&
          ` After refunds and corrections, ${formatMoney(rest)} of it remain.`}
      </Text>
      {(userId != null || earner !== undefined || payoutIds.length > 0) && (
        <Group gap="md" mt="sm">
          {userId != null && (
            <Anchor
              component={Link}
              to={`/apps/${appId}/events?user=${encodeURIComponent(userId)}`}
              size="sm"
            >
              All events of the user
            </Anchor>
          )}
          {earner !== undefined && own.length > 0 && (
            <Anchor
              component={Link}
              to={`/apps/${appId}/commissions?user=${encodeURIComponent(earner.customerUserId)}`}
              size="sm"
            >
              Commissions of the user
            </Anchor>
          )}
          {payoutIds.map((id, index) => (
            <Anchor key={id} component={Link} to={`/apps/${appId}/payouts/${id}`} size="sm">
              {cents < 0 ? 'The payout that deducted it' : 'The payout'}
              {payoutIds.length > 1 && `, ${index + 1} of ${payoutIds.length}`}
            </Anchor>
          ))}
        </Group>
      )}
    </section>
  );
}
