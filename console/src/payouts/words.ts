import type { Schemas } from '../api/client.ts';
import { formatCount, formatCountOf, formatInstant, formatMoney } from '../format.ts';

export type Run = Schemas['PayoutRun'];
export type RunItem = Schemas['PayoutRunItem'];
export type RunExclusion = Schemas['PayoutRunExclusion'];

/** Says why a creator is paid nothing now, or by a payout run, which leaves out those to whom less than its minimum is due. */
export function whyNotPaid(
  { reason, balanceCents }: Pick<RunExclusion, 'reason' | 'balanceCents'>,
  minimumCents = 0,
): string {
  switch (reason) {
    case 'held':
      return 'Not due yet: all is in the hold period.';
    case 'reversed':
      return 'Refunds and deductions take back exactly what is due.';
    case 'payouts_blocked':
      return balanceCents > 0
        ? `You have blocked the payouts of ${formatMoney(balanceCents)}.`
        : 'You have blocked the payouts.';
    case 'negative_balance':
      return `Refunds and deductions took back ${formatMoney(-balanceCents)} more than is due. Later commissions have to outweigh that.`;
    case 'no_payee':
      return `${formatMoney(balanceCents)} is due, and there is no payee to pay it to.`;
    case 'payee_changed':
      return `${formatMoney(balanceCents)} is due. The payee is new, and does not count yet.`;
    case 'below_minimum':
      return `${formatMoney(balanceCents)} is due, less than the minimum of ${formatMoney(minimumCents)}.`;
    case 'too_many_commissions':
      return 'More is due than one payout takes. Pay this creator alone, until nothing remains.';
  }
}

/** Why an item of a payout run was not paid. */
export const UNPAID: Readonly<
  Record<Exclude<NonNullable<RunItem['outcome']>, 'paid' | 'resent' | 'waiting'>, string>
> = {
  total_changed: 'A refund, a deduction or another payout changed what is due after the draft.',
  not_returned: 'It was sent again after the draft, or did not come back.',
  blocked: 'The payouts were blocked after the draft.',
  payee_changed: 'The payee was changed after the draft.',
  empty: 'Nothing was due any more.',
  closed: 'The service could not pay within an hour.',
  cancelled: 'The run was cancelled before.',
};

export const RUN_STATUSES: Readonly<
  Record<Run['status'], { readonly word: string; readonly tone: 'good' | 'wait' | 'plain' }>
> = {
  draft: { word: 'Draft', tone: 'wait' },
  approved: { word: 'Being paid', tone: 'wait' },
  settled: { word: 'Settled', tone: 'good' },
  cancelled: { word: 'Cancelled', tone: 'plain' },
  expired: { word: 'Expired', tone: 'plain' },
};

/** Says how far a payout run that is being paid is: "12 of 30 creators are settled". */
export const progressOf = (run: Run): string =>
  `${formatCount(run.settledCount)} of ${itemsOf(run, run.itemCount)} ${run.itemCount === 1 ? 'is' : 'are'} settled`;

/** Counts items of a run: creators whom it pays, or payouts that it sends again. */
export const itemsOf = ({ kind }: Pick<Run, 'kind'>, count: number): string =>
  formatCountOf(count, kind === 'pay' ? 'creator' : 'payout');

/** Says what a payout run pays or has paid, and what follows. Stands behind the word of its status. */
export function sentenceOf(run: Run): string {
  const { kind, itemCount, totalCents, paidCount, paidCents } = run;
  const amount = `${itemsOf(run, itemCount)}, ${formatMoney(totalCents)}`;
  const [pays, paid, none, again] =
    kind === 'pay' ? ['pays', 'paid', 'nobody', ''] : ['sends', 'wrote', 'nothing', ', to new files'];
  const end = run.endedAt === null ? '' : ` on ${formatInstant(run.endedAt)}`;
  switch (run.status) {
    case 'draft':
      return itemCount === 0
        ? `It ${pays} ${none}, so there is nothing to approve.`
        : `${amount}. It ${pays} nothing until you approve it. It can be approved until ${formatInstant(run.expiresAt)}.`;
    case 'approved':
      return run.stoppedAt === null
        ? `${amount}. You can leave this page, and it goes on.`
        : 'It was cancelled: nobody further is paid. Payouts that have begun are being finished.';
    case 'settled': {
      const stopped = run.stoppedAt === null ? '' : ' It was cancelled before the others.';
      return paidCount === itemCount
        ? `It ${paid} ${amount}${again}${end}.`
        : `It ${paid} ${formatCount(paidCount)} of ${itemsOf(run, itemCount)}, ${formatMoney(paidCents)} of ${formatMoney(totalCents)}${again}${end}.${stopped}`;
    }
    case 'cancelled':
      return `By hand or by a later draft${end}. It ${paid} ${none}.`;
    case 'expired':
      return `Nobody approved it until ${formatInstant(run.expiresAt)}. It ${paid} ${none}. Draft a new one.`;
  }
}

/** Names a key: its label, or its first and last characters. */
export const keyName = ({ label, display }: Run['createdBy']): string => label ?? display;

/** Returns who has drafted a run: a key, or the payout schedule, for a month. */
export const drafterOf = ({ createdBy, scheduledMonth }: Pick<Run, 'createdBy' | 'scheduledMonth'>): string =>
  scheduledMonth === undefined ? keyName(createdBy) : `the payout schedule, for ${scheduledMonth}`;

/** How the money of a creator is sent. */
export const METHODS: Readonly<Record<RunItem['method'], string>> = {
  paypal: 'PayPal',
  wise: 'Wise',
  other: 'Another way',
};
