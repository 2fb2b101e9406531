import type { Schemas } from '../api/client.ts';
import { formatMoney } from '../format.ts';
import { EVENT_KINDS } from '../words.ts';

/** Names an event by what it says: "Refund of $59.99". `amountMinor` is in minor units of `currency`. */
export function eventTitle(
  kind: Schemas['Event']['kind'],
  amountMinor: number | null | undefined,
  currency: string | null | undefined,
): string {
  return amountMinor == null || currency == null
    ? EVENT_KINDS[kind]
    : `${EVENT_KINDS[kind]} of ${formatMoney(amountMinor, currency)}`;
}
