import * as z from 'zod';
import type { AdjustmentFact, OriginalAmount } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import { done, ignored, isBeforeVersion, originalAmount, readObject, STORE } from './envelope.ts';
import type { Envelope } from './envelope.ts';
import { amount, ref } from './objects.ts';
import { chargeNames, readCharge } from './payments.ts';

/** The fields of refunds and disputes, which name the payment that they take money from. */
const refundOrDisputeSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount,
  created: read.optionalEpochSeconds,
  status: read.optionalText,
  payment_intent: ref,
  charge: ref,
});

/** A refund or dispute, with the reference of its payment and its amount in the minor units of ISO 4217. */
type RefundOrDispute = Pick<z.infer<typeof refundOrDisputeSchema>, 'id' | 'status' | 'charge'> & {
  /** When it was created, epoch ms. */
  readonly created: number | null;
  readonly paymentRef: string;
  readonly money: OriginalAmount;
};

function readRefundOrDispute(envelope: Envelope): Read<RefundOrDispute> {
  const object = readObject(envelope, refundOrDisputeSchema);
  if (!object.ok) return object;
  const paymentRef = object.value.payment_intent ?? object.value.charge;
  if (paymentRef === null) {
    return { ok: false, reason: 'data.object names neither a payment_intent nor a charge' };
  }
  const money = originalAmount(object.value.currency, object.value.amount);
  return money.ok ? { ok: true, value: { ...object.value, paymentRef, money: money.value } } : money;
}

function adjustmentOf(
  object: RefundOrDispute,
  state: Pick<AdjustmentFact, 'kind' | 'state' | 'rank'>,
): AdjustmentFact {
  return {
    ...state,
    store: STORE,
    ref: object.id,
    paymentRef: object.paymentRef,
    ...object.money,
  };
}

/** Since this API version every refund has its own events. Before, only a refund without a charge had them. */
const REFUND_EVENTS_SINCE = '2024-10-28';

const refundedChargeSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount_refunded: amount,
  payment_intent: ref,
});

/**
 * Reads `charge.refunded`. On endpoints without events per refund its running total is one adjustment per charge, whose
 * latest state counts. On other endpoints it repeats the refunds' own events.
 */
export function readRefundedCharge(envelope: Envelope): ParseResult {
  if (!isBeforeVersion(envelope, REFUND_EVENTS_SINCE)) {
    return readCharge(
      envelope,
      'each refund arrives as refund.created or refund.updated, which is counted instead',
    );
  }
  const charge = readObject(envelope, refundedChargeSchema);
  if (!charge.ok) return failed(charge.reason);
  const { id, payment_intent: intent, currency, amount_refunded: total } = charge.value;
  const money = originalAmount(currency, total);
  if (!money.ok) return failed(money.reason);
  const refunded = {
    id,
    status: null,
    created: null,
    charge: id,
    paymentRef: intent ?? id,
    money: money.value,
  };
  return done(envelope, 'refund', {
    ...chargeNames(envelope),
    adjustment: adjustmentOf(refunded, { kind: 'refund', state: 'applied', rank: 1 }),
  });
}

/**
 * Reads a refund. It has one id in all its events, and its status shows whether money moved. An endpoint may report running totals
 * first and refunds after its API version was raised: the total contains the refunds that were made before it.
 */
export function readRefund(envelope: Envelope): ParseResult {
  const refund = readRefundOrDispute(envelope);
  if (!refund.ok) return failed(refund.reason);
  const madeAt = refund.value.created;
  switch (refund.value.status) {
    case 'succeeded': {
      if (refund.value.charge !== null && isBeforeVersion(envelope, REFUND_EVENTS_SINCE)) {
        // Without an event, so that the same event counts when an endpoint of a newer version beside this one reports it, too.
        return normalized.ignored(
          `the endpoint's API version is older than ${REFUND_EVENTS_SINCE}, so the total in charge.refunded is counted instead`,
        );
      }
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'applied', rank: 1 });
      return done(envelope, 'refund', { adjustment: { ...adjustment, madeAt } });
    }
    case 'failed':
    case 'canceled': {
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'reversed', rank: 2 });
      return done(envelope, 'refund_reversed', { adjustment: { ...adjustment, madeAt } });
    }
    default:
      return ignored(envelope, 'the refund is not complete yet; a later event reports the outcome');
  }
}

const creditNoteSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  invoice: ref.refine((value): value is string => value !== null, 'an invoice id'),
  out_of_band_amount: amount.nullish(),
  status: read.optionalText,
});

/**
 * Reads a credit note: what it returns outside Stripe. Its refunds have events of their own, and what it credits to the customer
 * reduces what later invoices take.
 */
export function readCreditNote(envelope: Envelope): ParseResult {
  const note = readObject(envelope, creditNoteSchema);
  if (!note.ok) return failed(note.reason);
  const { id, currency, invoice: paymentRef, status, out_of_band_amount: outside } = note.value;
  if (outside == null || outside === 0) {
    return ignored(
      envelope,
      'the credit note returns nothing outside Stripe; its refunds arrive as events of their own',
    );
  }
  const money = originalAmount(currency, outside);
  if (!money.ok) return failed(money.reason);
  const isVoid = status === 'void';
  return done(envelope, isVoid ? 'refund_reversed' : 'refund', {
    adjustment: {
      kind: 'credit_note',
      store: STORE,
      ref: id,
      paymentRef,
      state: isVoid ? 'reversed' : 'applied',
      rank: isVoid ? 2 : 1,
      ...money.value,
    },
  });
}

/**
 * Returns the state of a dispute's money after one of its events, or null where the event does not show it. The status decides,
 * not the name of the event: Stripe sends `funds_reinstated` also for a lost dispute, when it returns what was refunded before.
 * While a dispute or its appeal is open, the money is gone. An inquiry (`warning_…`) moves no money. Neither does a dispute that
 * was prevented: its refund is an event of its own. Without a known status only the events that begin a dispute count.
 */
function disputeState({ type }: Envelope, status: string | null): AdjustmentFact['state'] | null {
  switch (status) {
    case 'needs_response':
    case 'under_review':
    case 'appeal_needs_response':
    case 'appeal_under_review':
    case 'lost':
      return 'applied';
    case 'won':
    case 'prevented':
      return 'reversed';
    case 'warning_needs_response':
    case 'warning_under_review':
    case 'warning_closed':
      return null;
    default:
      return type === 'charge.dispute.created' || type === 'charge.dispute.funds_withdrawn'
        ? 'applied'
        : null;
  }
}

/** All states of a dispute have one rank, so the latest one counts: an appeal or arbitration may change the result. */
const DISPUTE_RANK = 2;

/** Reads a dispute. It has one id in all its events. */
export function readDispute(envelope: Envelope): ParseResult {
  const dispute = readRefundOrDispute(envelope);
  if (!dispute.ok) return failed(dispute.reason);
  const state = disputeState(envelope, dispute.value.status);
  if (state === null) {
    return ignored(envelope, 'the status of the dispute shows no money that was taken or given back');
  }
  const adjustment = adjustmentOf(dispute.value, { kind: 'chargeback', state, rank: DISPUTE_RANK });
  return done(envelope, state === 'applied' ? 'chargeback' : 'chargeback_reversed', { adjustment });
}
