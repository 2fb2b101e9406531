import type { Theme } from '../../test/support/money-sales.ts';

// Rules of the money, each broken in one place of the code. The model of the money must notice every one.

/** A rule, and how its code is changed so that it does not hold. */
export interface BrokenRule {
  readonly rule: string;
  /** What the worlds are about in which the rule matters most often. Payments, if absent. */
  readonly theme?: Theme;
  readonly file: string;
  /** Stands once in the file. */
  readonly code: string;
  readonly broken: string;
}

const EVALUATE = 'src/domain/evaluate-payment.ts';
const POLICY = 'src/domain/policy.ts';
const PAYERS = 'src/domain/payers.ts';
const ADJUST = 'src/domain/apply-adjustments.ts';
const ROWS = 'src/domain/payment-rows.ts';

export const BROKEN_RULES: readonly BrokenRule[] = [
  {
    rule: 'a late identify attributes no purchase from before the touch',
    file: PAYERS,
    code: 'const isAfterTouch = paidAt >= binding.touchedAt || isTouch;',
    broken: 'const isAfterTouch = true || isTouch;',
  },
  {
    rule: 'a late identify attributes no purchase that is older than the window',
    file: PAYERS,
    code: 'payment.now - paidAt <= payment.app.attributionWindowDays * DAY_MS',
    broken: 'payment.now - paidAt <= 2 * payment.app.attributionWindowDays * DAY_MS',
  },
  {
    rule: 'what a founder attributes works from its instant on',
    theme: 'customers who are given away',
    file: PAYERS,
    code: 'return paidAt >= binding.touchedAt || payment.occurredAt === binding.touchedAt;',
    broken: 'return true;',
  },
  {
    rule: 'codes of several creators attribute nothing',
    file: EVALUATE,
    code: "if (!areCodesOf(payment, owner.binding.affiliateId)) return 'ambiguous';",
    broken: '',
  },
  {
    rule: 'a code gives nobody away who belongs to somebody',
    file: EVALUATE,
    code: 'if (owner === undefined || !isFree ||',
    broken: 'if (owner === undefined ||',
  },
  {
    rule: 'a key that a code bound goes before the users of a payment',
    theme: 'customers who are given away',
    file: PAYERS,
    code: '(!isByHand && (binding === null || mayAttribute(payment, binding)))',
    broken: 'false',
  },
  {
    rule: "a founder's later word about a user goes before the key",
    theme: 'customers who sign in late',
    file: PAYERS,
    code: "(one) => (one.via === 'event' || one.via === 'key') && isSaidLater(one),",
    broken: '() => false,',
  },
  {
    rule: "a founder's later word about a user goes before who signed in with the key",
    theme: 'purchases that are transferred',
    file: PAYERS,
    code: 'payers.some(isSaidLater) ? payers.filter((one) => !standsForKey(one)) : payers;',
    broken: 'payers;',
  },
  {
    rule: 'a payment that replaces a part has its number',
    theme: 'customers who pay again',
    file: EVALUATE,
    code: 'if (payment.inherited?.numbered != null) return payment.inherited.numbered;',
    broken: '',
  },
  {
    rule: 'a paused creator earns nothing',
    file: EVALUATE,
    code: "if (binding.affiliateStatus === 'paused') return { likelyCause: 'affiliate_paused', earning: null };",
    broken: '',
  },
  {
    rule: "a creator's own rate goes before the policies of group and app",
    file: POLICY,
    code: "assigned !== null && (assigned.scope === 'affiliate' || ownRateBps === null) ? assigned : null",
    broken: 'assigned',
  },
  {
    rule: 'the first rule that applies counts',
    file: POLICY,
    code: 'terms.rules.findIndex(',
    broken: 'terms.rules.findLastIndex(',
  },
  {
    rule: 'the base of proceeds leaves out the store fee',
    file: POLICY,
    code: 'paidMinor - (tax?.minor ?? 0) - (storeFee?.minor ?? 0)',
    broken: 'paidMinor - (tax?.minor ?? 0)',
  },
  {
    rule: 'the fee that a policy assumes is a part of the price without tax',
    theme: 'payments that two providers report',
    file: POLICY,
    code: 'const assumedFee = share(Math.max(0, paidMinor - tax.minor), feeBps, WHOLE_BPS);',
    broken: 'const assumedFee = share(paidMinor, feeBps, WHOLE_BPS);',
  },
  {
    rule: "the components of the payment's own provider go before those of another one",
    theme: 'payments that two providers report',
    file: POLICY,
    code: 'Number(a.source !== ownSource) - Number(b.source !== ownSource) ||',
    broken: '',
  },
  {
    rule: 'a fixed amount is at most the base',
    file: POLICY,
    code: 'return isAboveBase ? flatCents : Math.min(flatCents, baseCents);',
    broken: 'return isAboveBase ? flatCents : flatCents;',
  },
  {
    rule: 'a rule of the first payments does not apply to later ones',
    file: POLICY,
    code: 'sale.paymentNumber <= (paymentNumber.to ?? Infinity) &&',
    broken: '',
  },
  {
    rule: 'a payment up to two days before the end of a month counts after it',
    theme: 'customers who pay again',
    file: 'src/domain/calendar.ts',
    code: 'export const EARLY_CHARGE_MS = 48 * HOUR_MS;',
    broken: 'export const EARLY_CHARGE_MS = 0 * HOUR_MS;',
  },
  {
    rule: 'half a cent is rounded up',
    file: 'src/domain/money.ts',
    code: 'const rounded = (2n * dividend + divisor) / (2n * divisor);',
    broken: 'const rounded = (2n * dividend + divisor - 1n) / (2n * divisor);',
  },
  {
    rule: 'a reversal of all chargebacks undoes those before it alone',
    file: ADJUST,
    code: '(u) => u.kind === adjustment.kind && u.occurredAt >= adjustment.occurredAt,',
    broken: '(u) => u.kind === adjustment.kind,',
  },
  {
    rule: 'what is taken back is a share of all that was refunded, rounded once',
    file: ADJUST,
    code: 'const amountCents = reversed - shouldReverse;',
    broken: 'const amountCents = -share(earnedCents, toMinor - fromMinor, payment.amountMinor);',
  },
  {
    rule: 'the end of a refund or dispute decides, whenever it is reported',
    theme: 'connected accounts',
    file: 'src/db/events.ts',
    code: `where (excluded.rank, excluded.stated_at, excluded.state = 'reversed', excluded.amount_minor)
          > (old.rank, old.stated_at, old.state = 'reversed', old.amount_minor)`,
    broken: 'where true',
  },
  {
    rule: 'of several rows of one payment the one that earned first stays',
    file: ROWS,
    code: 'compareIds(earningId(a), earningId(b)) ||',
    broken: 'compareIds(earningId(b), earningId(a)) ||',
  },
  {
    rule: 'a part earns nothing beside the whole',
    theme: 'invoices that are paid in parts',
    file: ROWS,
    code: 'isPart(own) || attributed.some((row) => row.paymentId !== own.paymentId && !isPart(row));',
    broken: 'attributed.some((row) => row.paymentId !== own.paymentId && !isPart(row));',
  },
  {
    rule: 'a transfer of several customers who belong to creators binds nobody',
    theme: 'purchases that are transferred',
    file: 'src/db/transfers.ts',
    code: 'group by t.event_id having count(distinct coalesce(b.counts_with, b.id::text)) = 1 and count(distinct a.id) = 1',
    broken: 'group by t.event_id',
  },
  {
    rule: 'a user who is named with keys of several creators belongs to none',
    theme: 'customers who sign in late',
    file: 'src/db/signed-in-users.ts',
    code: 'having count(distinct t.affiliate_id) = 1 and count(*) = count(t.affiliate_id)',
    broken: 'having count(t.affiliate_id) > 0',
  },
];
