import type { Schemas } from '../api/client.ts';
import { Tag } from './badges.tsx';

/**
 * Where what a creator earned is, in the same words for founders and creators: held, due, booked in a payout, and then, as
 * the founder or the file of the bank says, sent or come back.
 */
export const COMMISSION_STATUSES = {
  pending: 'Held',
  matured: 'Due',
  paid: 'Booked',
} as const satisfies Readonly<Record<Schemas['Commission']['status'], string>>;

/** What was said last of the money of a payout. Null or `withdrawn`: nothing that still counts. */
type Said = Schemas['PayoutTransfer']['state'] | null;

/** Says where the money of a payout is. */
export function MoneyTag({ said }: { readonly said: Said }) {
  if (said === null || said === 'withdrawn') return <Tag tone="wait">Booked</Tag>;
  return said === 'returned' ? <Tag tone="bad">Came back</Tag> : <Tag tone="good">Sent</Tag>;
}
