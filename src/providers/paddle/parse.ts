import * as z from 'zod';
import type {
  AdjustmentFact,
  EventKind,
  NormalizedEvent,
  OriginalAmount,
  PaymentFact,
} from '../../domain/events.ts';
import { share } from '../../domain/money.ts';
import { codesOf, codesOfSubscription } from '../../domain/purchase-codes.ts';
import type { StatedCode } from '../../domain/purchase-codes.ts';
import type { ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { failed, normalizedEvent } from '../shared/normalized-event.ts';
import { toIsoMinorUnits } from '../shared/minor-units.ts';
import { paidShare, statedComponent, withComponents } from '../shared/payment-components.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import { PADDLE_MINOR_UNITS } from './currencies.ts';

const STORE = 'paddle';

/** The ids of events from Paddle's simulator, which are signed with the real secret, begin with this. */
export const SIMULATED_EVENT_PREFIX = 'ntfsimevt_';

const envelopeSchema = z.object({
  event_id: read.id,
  event_type: read.id,
  occurred_at: read.timeText,
  data: read.anything,
});
type Envelope = z.infer<typeof envelopeSchema>;

const items = read.items(read.part({ price: read.part({ product_id: read.optionalId }) }));

/** The same amount in the currency of the payout. It is used only where that is USD. */
const payoutTotals = read.part({
  currency_code: read.optionalText,
  grand_total: read.optionalMinorText,
  total: read.optionalMinorText,
});
type PayoutTotals = z.infer<typeof payoutTotals>;

const totalsSchema = z.object({
  total: read.minorText,
  grand_total: read.minorText.nullish(),
  tax: read.optionalMinorText,
  // Null until the transaction is completed.
  fee: read.optionalMinorText,
});

const transactionSchema = z.object({
  id: read.id,
  origin: read.optionalText,
  currency_code: read.currencyCode,
  collection_mode: read.optionalText,
  billed_at: read.optionalTimeText,
  subscription_id: read.optionalId,
  discount_id: read.optionalId,
  custom_data: read.userMetadata,
  items,
  details: z.object({
    totals: totalsSchema,
    payout_totals: payoutTotals,
    // Null without adjustments: the totals less credits, refunds and chargebacks.
    adjusted_totals: read.part({ grand_total: read.optionalMinorText }),
    adjusted_payout_totals: payoutTotals,
  }),
  payments: read.items(
    read.part({
      amount: read.optionalMinorText,
      status: read.optionalText,
      captured_at: read.optionalTimeText,
    }),
  ),
});
type Transaction = z.infer<typeof transactionSchema>;

const adjustmentSchema = z.object({
  id: read.id,
  action: read.id,
  status: read.optionalText,
  transaction_id: read.id,
  currency_code: read.currencyCode,
  totals: z.object({ total: read.minorText.refine((minor) => minor >= 0, 'an amount of zero or more') }),
  payout_totals: payoutTotals,
});
type Adjustment = z.infer<typeof adjustmentSchema>;

const subscriptionSchema = z.object({
  id: read.id,
  custom_data: read.userMetadata,
  items,
  scheduled_change: read.part({ action: read.optionalText }),
});

type Details = Partial<Omit<NormalizedEvent, 'sourceEventId' | 'kind' | 'environment'>>;

/** Builds the event. Except for simulations no body names its environment: that of the secret counts then. */
function eventOf(envelope: Envelope, kind: EventKind, details: Details): NormalizedEvent {
  return normalizedEvent({
    sourceEventId: envelope.event_id,
    kind,
    environment: envelope.event_id.startsWith(SIMULATED_EVENT_PREFIX) ? 'sandbox' : null,
    occurredAt: envelope.occurred_at,
    ...details,
  });
}

function done(envelope: Envelope, kind: EventKind, details: Details = {}): ParseResult {
  return normalized.done(eventOf(envelope, kind, details));
}

function ignored(envelope: Envelope, reason: string, details: Details = {}): ParseResult {
  return normalized.ignored(reason, eventOf(envelope, 'other', details));
}

function readData<T>(envelope: Envelope, schema: z.ZodType<T>): Read<T> {
  return read.readAs(schema, envelope.data, 'data');
}

function productOf(list: z.infer<typeof items>): string | null {
  return list[0]?.price.product_id ?? null;
}

/** Returns the USD value of a payout, or null where it is in another currency or not known. */
function payoutUsdCents(payout: PayoutTotals): number | null {
  const cents = payout.currency_code === 'USD' ? (payout.grand_total ?? payout.total ?? 0) : 0;
  return cents > 0 ? cents : null;
}

/** Returns an amount of Paddle's minor units. An amount in USD is its own USD value. */
function originalAmount(
  currency: string,
  paddleMinor: number,
  payoutCents: number | null,
): Read<OriginalAmount> {
  const amountMinor = toIsoMinorUnits(paddleMinor, currency, PADDLE_MINOR_UNITS);
  if (amountMinor === null) return { ok: false, reason: `the amount in ${currency} is too large` };
  const usdCents = currency === 'USD' ? amountMinor : payoutCents;
  return { ok: true, value: { currency, amountMinor, usdCents } };
}

/** Returns what the captured payments of a transaction add up to, and when the last one was captured. */
function capturedPayments({ payments }: Transaction) {
  const captured = payments.filter(({ status }) => status === 'captured');
  return {
    total: captured.reduce((sum, { amount }) => sum + (amount ?? 0), 0),
    lastAt: captured.reduce<number | null>(
      (last, { captured_at: at }) => (at === null ? last : Math.max(at, last ?? at)),
      null,
    ),
  };
}

/**
 * Returns what the customer really paid: the grand total, which excludes the customer's credit. An invoice may be credited
 * before it is paid, which its totals do not show. So an invoice is worth its captured payments, else its totals after
 * adjustments, and at most its grand total. The payments come first, since the adjusted totals also lack refunds, which
 * are booked separately.
 */
function chargedAmount(transaction: Transaction): number {
  const { totals, adjusted_totals: afterAdjustments } = transaction.details;
  const grandTotal = totals.grand_total ?? totals.total;
  if (transaction.collection_mode !== 'manual') return grandTotal;
  const captured = capturedPayments(transaction).total;
  return Math.min(captured > 0 ? captured : (afterAdjustments.grand_total ?? grandTotal), grandTotal);
}

/** Returns the USD value of what was charged, or null where the transaction is not paid out in USD. */
function chargedUsdCents({ details }: Transaction, charged: number): number | null {
  const { totals, adjusted_totals: afterAdjustments } = details;
  const grandTotal = totals.grand_total ?? totals.total;
  if (charged === grandTotal) return payoutUsdCents(details.payout_totals);
  // Not their total, in which the customer's credit is not deducted.
  const adjustedCents = payoutUsdCents({ ...details.adjusted_payout_totals, total: null });
  if (charged === afterAdjustments.grand_total && adjustedCents !== null) return adjustedCents;
  const cents = payoutUsdCents(details.payout_totals);
  return cents === null ? null : share(cents, charged, grandTotal);
}

/**
 * Adds the tax and Paddle's fee to a payment. If credit paid a part of the total, the tax counts in proportion, and the fee is unknown:
 * no page says which amount it is a part of.
 */
function addComponents(
  payment: PaymentFact,
  { details: { totals } }: Transaction,
  charged: number,
): PaymentFact {
  const { currency } = payment;
  const component = (minor: number | null) =>
    statedComponent(minor === null ? null : toIsoMinorUnits(minor, currency, PADDLE_MINOR_UNITS));
  const tax = paidShare(totals.tax, { paid: charged, total: totals.total });
  const fee = charged === totals.total ? totals.fee : null;
  return withComponents(payment, { tax: component(tax), storeFee: component(fee) });
}

/** Returns when the money was received. An invoice is billed long before it is paid. */
function paidAt(transaction: Transaction, envelope: Envelope): number {
  const billedAt = transaction.collection_mode === 'manual' ? null : transaction.billed_at;
  return capturedPayments(transaction).lastAt ?? billedAt ?? envelope.occurred_at;
}

/** Returns the kind of a transaction. It does not show that a renewal ended a trial. */
function transactionKind(origin: Transaction['origin']): EventKind {
  switch (origin) {
    case 'subscription_recurring':
      return 'renewal';
    case 'subscription_update':
      return 'product_change';
    default:
      return 'purchase';
  }
}

function readTransaction(envelope: Envelope): ParseResult {
  const parsed = readData(envelope, transactionSchema);
  if (!parsed.ok) return failed(parsed.reason);
  const transaction = parsed.value;
  const details: Details = {
    occurredAt: paidAt(transaction, envelope),
    productId: productOf(transaction.items),
    userIds: read.distinct([transaction.custom_data.app_user_id]),
    userKeys: read.distinct([transaction.subscription_id]),
  };
  if (transaction.origin === 'subscription_payment_method_change') {
    return ignored(envelope, 'a change of the payment method is not a payment', details);
  }
  const charged = chargedAmount(transaction);
  const codes: readonly StatedCode[] = [{ namespace: 'paddle', value: transaction.discount_id }];
  // A trial or a full discount. The start of a trial arrives as subscription.trialing.
  if (charged <= 0) {
    const usedAt = paidAt(transaction, envelope);
    const subscriptionCodes = codesOfSubscription(transaction.subscription_id, usedAt, codes);
    return done(envelope, 'other', { ...details, subscriptionCodes });
  }
  const amount = originalAmount(transaction.currency_code, charged, chargedUsdCents(transaction, charged));
  if (!amount.ok) return failed(amount.reason);
  const payment = addComponents({ store: STORE, ref: transaction.id, ...amount.value }, transaction, charged);
  return done(envelope, transactionKind(transaction.origin), {
    ...details,
    payment,
    codes: codesOf(payment, codes),
  });
}

/** Returns the kind of an event that takes money back or gives it back. A warning is an early chargeback. */
function adjustmentKind({ kind, state }: Pick<AdjustmentFact, 'kind' | 'state'>): EventKind {
  const event = kind === 'refund' ? 'refund' : 'chargeback';
  return state === 'applied' ? event : `${event}_reversed`;
}

function adjusted(
  envelope: Envelope,
  adjustment: Adjustment,
  state: Pick<AdjustmentFact, 'kind' | 'state' | 'rank' | 'reversesAll'>,
): ParseResult {
  const { id: ref, transaction_id: paymentRef, currency_code: currency, totals } = adjustment;
  const amount = originalAmount(currency, totals.total, payoutUsdCents(adjustment.payout_totals));
  if (!amount.ok) return failed(amount.reason);
  return done(envelope, adjustmentKind(state), {
    adjustment: { ...state, store: STORE, ref, paymentRef, ...amount.value },
  });
}

/** Reads a refund or chargeback. It has one id in all its events, and its status shows whether money moved. */
function readRefundOrChargeback(
  envelope: Envelope,
  adjustment: Adjustment,
  kind: AdjustmentFact['kind'],
): ParseResult {
  switch (adjustment.status) {
    case 'approved':
      return adjusted(envelope, adjustment, { kind, state: 'applied', rank: 1 });
    case 'reversed':
      return adjusted(envelope, adjustment, { kind, state: 'reversed', rank: 2 });
    case 'rejected':
      return ignored(envelope, `the ${kind} was rejected, so no money moved`);
    default:
      return ignored(envelope, `the ${kind} is not approved yet; a later event reports the outcome`);
  }
}

/** Reads the reversal of chargebacks or warnings. It is an adjustment of its own that names only the transaction. */
function readReversal(envelope: Envelope, adjustment: Adjustment, kind: AdjustmentFact['kind']): ParseResult {
  if (adjustment.status !== 'approved') {
    return ignored(envelope, `the ${kind} is not reversed yet; a later event reports the outcome`);
  }
  return adjusted(envelope, adjustment, { kind, state: 'reversed', rank: 1, reversesAll: true });
}

function readAdjustment(envelope: Envelope): ParseResult {
  const parsed = readData(envelope, adjustmentSchema);
  if (!parsed.ok) return failed(parsed.reason);
  const adjustment = parsed.value;
  switch (adjustment.action) {
    case 'refund':
    case 'chargeback':
    // Paddle refunds the customer when a bank warns of a chargeback, and lists warnings among the movements of a balance.
    case 'chargeback_warning':
      return readRefundOrChargeback(envelope, adjustment, adjustment.action);
    case 'chargeback_reverse':
      return readReversal(envelope, adjustment, 'chargeback');
    case 'chargeback_warning_reverse':
      return readReversal(envelope, adjustment, 'chargeback_warning');
    case 'credit':
    case 'credit_reverse':
      return ignored(envelope, 'a credit reduces later charges and moves no money now');
    default:
      return ignored(
        envelope,
        `adjustments with the action ${read.typeName(adjustment.action)} do not affect commissions`,
      );
  }
}

/** Returns the kind of a subscription event. It does not show changed items, since the body has only the new ones. */
function subscriptionKind(type: string, scheduledAction: string | null): EventKind | null {
  if (type === 'subscription.trialing') return 'trial_started';
  if (type === 'subscription.canceled') return 'cancellation';
  return type === 'subscription.updated' && scheduledAction === 'cancel' ? 'cancellation' : null;
}

function readSubscription(envelope: Envelope): ParseResult {
  const subscription = readData(envelope, subscriptionSchema);
  if (!subscription.ok) return failed(subscription.reason);
  const { id: key, scheduled_change: change } = subscription.value;
  const userIds = read.distinct([subscription.value.custom_data.app_user_id]);
  const details: Details = {
    productId: productOf(subscription.value.items),
    userIds,
    userKeys: [key],
    // The app may name the user only after the first payment, or a later change may remove the name.
    userLinks: userIds.map((customerUserId) => ({ key, customerUserId })),
  };
  const kind = subscriptionKind(envelope.event_type, change.action);
  if (kind === null) return ignored(envelope, 'a change of a subscription moves no money', details);
  return done(envelope, kind, details);
}

function readType(envelope: Envelope): ParseResult {
  const type = envelope.event_type;
  switch (type) {
    case 'transaction.completed':
      return readTransaction(envelope);
    case 'transaction.paid':
      return ignored(envelope, 'the same payment arrives as transaction.completed, which is counted instead');
    case 'adjustment.created':
    case 'adjustment.updated':
      return readAdjustment(envelope);
    case 'subscription.activated':
    case 'subscription.canceled':
    case 'subscription.created':
    case 'subscription.imported':
    case 'subscription.past_due':
    case 'subscription.paused':
    case 'subscription.resumed':
    case 'subscription.trialing':
    case 'subscription.updated':
      return readSubscription(envelope);
    default:
      return ignored(envelope, `events of type ${read.typeName(type)} do not affect commissions`);
  }
}

export function parse(body: Buffer): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const envelope = read.readAs(envelopeSchema, json.value);
  return envelope.ok ? readType(envelope.value) : failed(envelope.reason);
}
