import { Text } from '@mantine/core';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { CAUSES, OUTCOMES } from '../words.ts';

type Event = Schemas['Event'];

const TONES = {
  earned: 'good',
  reversed: 'bad',
  nothing: 'plain',
  waiting: 'wait',
  sandbox: 'plain',
} as const;

/** Says when a payment that waits for its user is decided. The time is past while the service is about to do it. */
export const waitText = (waitsUntil: number): string =>
  `Decided ${waitsUntil > Date.now() ? formatAgo(waitsUntil) : 'in a moment'}`;

/** What an event brought about, and for whom or why. */
export function Outcome({ event, appId }: { readonly event: Event; readonly appId: string }) {
  const { outcome, commissionCents, affiliateId, affiliateName, likelyCause, explanation, waitsUntil } =
    event;
  return (
    <>
      <Tag tone={TONES[outcome]}>
        {OUTCOMES[outcome]}
        {commissionCents !== null && ` ${formatMoney(commissionCents)}`}
      </Tag>
      {affiliateId !== null && affiliateName !== null && (
        <Text size="sm" mt={2}>
          <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link>
        </Text>
      )}
      {explanation !== null && outcome !== 'sandbox' && (
        <Text size="sm" className="quiet" mt={2} title={explanation}>
          {waitsUntil !== undefined
            ? waitText(waitsUntil)
            : likelyCause === null
              ? explanation
              : CAUSES[likelyCause]}
        </Text>
      )}
    </>
  );
}

/** What the customer paid, in the currency of the store and in dollars. */
export function Amount({
  event: { amountMinor, amountCents, currency },
}: {
  readonly event: Pick<Event, 'amountMinor' | 'amountCents' | 'currency'>;
}) {
  if (amountMinor === null || currency === null) return amountCents === null ? '' : formatMoney(amountCents);
  return (
    <>
      {formatMoney(amountMinor, currency)}
      {currency !== 'USD' && amountCents !== null && (
        <Text size="xs" className="quiet">
          {formatMoney(amountCents)}
        </Text>
      )}
    </>
  );
}
