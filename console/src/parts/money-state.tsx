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

const MONEY = {
  booked: { word: COMMISSION_STATUSES.paid, tone: 'wait' },
  sent: { word: 'Sent', tone: 'good' },
  returned: { word: 'Came back', tone: 'bad' },
} as const;

const moneyOf = (said: Said) =>
  MONEY[said === null || said === 'withdrawn' ? 'booked' : said === 'returned' ? 'returned' : 'sent'];

/** Returns where a commission is, in a word: that of the money of its payout once it has one. */
export const stateOfCommission = ({
  status,
  money,
}: Pick<Schemas['Commission'], 'status' | 'money'>): string =>
  status === 'paid' ? moneyOf(money?.state ?? null).word : COMMISSION_STATUSES[status];

/** Says where the money of a payout is. With `to`, it leads to the payout. */
export function MoneyTag({ said, ...link }: { readonly said: Said; readonly to?: string }) {
  const { word, tone } = moneyOf(said);
  return (
    <Tag tone={tone} {...link}>
      {word}
    </Tag>
  );
}
