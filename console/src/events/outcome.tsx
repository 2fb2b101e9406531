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

/** What an event brought about. */
export function Outcome({ event: { outcome, commissionCents } }: { readonly event: Event }) {
  return (
    <Tag tone={TONES[outcome]}>
      {OUTCOMES[outcome]}
      {commissionCents !== null && ` ${formatMoney(commissionCents)}`}
    </Tag>
  );
}

/** For whom an event brought something about, or why it did not. */
export function Why({ event, appId }: { readonly event: Event; readonly appId: string }) {
  const { outcome, affiliateId, affiliateName, likelyCause, explanation, waitsUntil } = event;
  return (
    <>
      {affiliateId !== null && affiliateName !== null && (
        <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link>
      )}{' '}
      {explanation !== null && outcome !== 'sandbox' && (
        <span className="quiet" title={explanation}>
          {waitsUntil !== undefined
            ? waitText(waitsUntil)
            : likelyCause === null
              ? explanation
              : CAUSES[likelyCause]}
        </span>
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
      <span>{formatMoney(amountMinor, currency)}</span>{' '}
      {currency !== 'USD' && amountCents !== null && (
        <span className="quiet">{formatMoney(amountCents)}</span>
      )}
    </>
  );
}
