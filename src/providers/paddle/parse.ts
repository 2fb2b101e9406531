import * as z from 'zod';
import type { AdjustmentFact, EventKind, NormalizedEvent, OriginalAmount } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { failed, normalizedEvent } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';

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

const transactionSchema = z.object({
  id: read.id,
  origin: read.optionalText,
  currency_code: read.currencyCode,
  billed_at: read.optionalTimeText,
  subscription_id: read.optionalId,
  custom_data: read.userMetadata,
  items,
  details: z.object({
    totals: z.object({ total: read.minorText, grand_total: read.minorText.nullish() }),
    payout_totals: payoutTotals,
  }),
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

/** Returns the amount as charged, and its value in USD where it was charged or is paid out in USD. */
function originalAmount(currency: string, amountMinor: number, payout: PayoutTotals): OriginalAmount {
  if (currency === 'USD') return { currency, amountMinor, usdCents: amountMinor };
  const paidOut = payout.currency_code === 'USD' ? (payout.grand_total ?? payout.total ?? 0) : 0;
  return { currency, amountMinor, usdCents: paidOut > 0 ? paidOut : null };
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
  const { totals, payout_totals: payout } = transaction.details;
  const details: Details = {
    occurredAt: transaction.billed_at ?? envelope.occurred_at,
    productId: productOf(transaction.items),
    userIds: read.distinct([transaction.custom_data.app_user_id]),
    userKeys: read.distinct([transaction.subscription_id]),
  };
  if (transaction.origin === 'subscription_payment_method_change') {
    return ignored(envelope, 'a change of the payment method is not a payment', details);
  }
  // What was really charged, without the customer's credit.
  const charged = totals.grand_total ?? totals.total;
  // A trial or a full discount. The start of a trial arrives as subscription.trialing.
  if (charged <= 0) return done(envelope, 'other', details);
  const payment = {
    store: STORE,
    ref: transaction.id,
    ...originalAmount(transaction.currency_code, charged, payout),
  };
  return done(envelope, transactionKind(transaction.origin), { ...details, payment });
}

function adjusted(
  envelope: Envelope,
  adjustment: Adjustment,
  state: Pick<AdjustmentFact, 'kind' | 'state' | 'rank' | 'reversesAll'>,
): ParseResult {
  const { id: ref, transaction_id: paymentRef, currency_code: currency, totals } = adjustment;
  const amount = originalAmount(currency, totals.total, adjustment.payout_totals);
  const kind: EventKind = state.state === 'applied' ? state.kind : `${state.kind}_reversed`;
  return done(envelope, kind, { adjustment: { ...state, store: STORE, ref, paymentRef, ...amount } });
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

function readAdjustment(envelope: Envelope): ParseResult {
  const parsed = readData(envelope, adjustmentSchema);
  if (!parsed.ok) return failed(parsed.reason);
  const adjustment = parsed.value;
  switch (adjustment.action) {
    case 'refund':
    case 'chargeback':
      return readRefundOrChargeback(envelope, adjustment, adjustment.action);
    case 'chargeback_reverse':
      if (adjustment.status !== 'approved') {
        return ignored(envelope, 'the chargeback is not reversed yet; a later event reports the outcome');
      }
      // A separate adjustment that names only the transaction.
      return adjusted(envelope, adjustment, {
        kind: 'chargeback',
        state: 'reversed',
        rank: 1,
        reversesAll: true,
      });
    case 'credit':
    case 'credit_reverse':
      return ignored(envelope, 'a credit reduces later charges and moves no money now');
    case 'chargeback_warning':
    case 'chargeback_warning_reverse':
      return ignored(envelope, 'a chargeback warning moves no money');
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
