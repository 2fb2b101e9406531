import * as z from 'zod';
import type { AdjustmentFact, OriginalAmount } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
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
  status: read.optionalText,
  payment_intent: ref,
  charge: ref,
});

/** A refund or dispute, with the reference of its payment and its amount in the minor units of ISO 4217. */
type RefundOrDispute = Pick<z.infer<typeof refundOrDisputeSchema>, 'id' | 'status' | 'charge'> & {
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
  const refunded = { id, status: null, charge: id, paymentRef: intent ?? id, money: money.value };
  return done(envelope, 'refund', {
    ...chargeNames(envelope),
    adjustment: adjustmentOf(refunded, { kind: 'refund', state: 'applied', rank: 1 }),
  });
}

/** Reads a refund. It has one id in all its events, and its status shows whether money moved. */
export function readRefund(envelope: Envelope): ParseResult {
  const refund = readRefundOrDispute(envelope);
  if (!refund.ok) return failed(refund.reason);
  if (refund.value.charge !== null && isBeforeVersion(envelope, REFUND_EVENTS_SINCE)) {
    return ignored(
      envelope,
      `the endpoint's API version is older than ${REFUND_EVENTS_SINCE}, so the total in charge.refunded is counted instead`,
    );
  }
  switch (refund.value.status) {
    case 'succeeded': {
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'applied', rank: 1 });
      return done(envelope, 'refund', { adjustment });
    }
    case 'failed':
    case 'canceled': {
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'reversed', rank: 2 });
      return done(envelope, 'refund_reversed', { adjustment });
    }
    default:
      return ignored(envelope, 'the refund is not complete yet; a later event reports the outcome');
  }
}

/**
 * Returns what an event of a dispute decides. The events that follow the opening have one rank, so the latest of them counts:
 * an appeal or arbitration may change the result of a closed dispute. An inquiry (`warning_…`) moves no money. Neither does a
 * dispute that was prevented: its refund is an event of its own.
 */
function disputeState(type: string, status: string | null): Pick<AdjustmentFact, 'state' | 'rank'> | null {
  if (status?.startsWith('warning_') === true) return null;
  switch (type) {
    case 'charge.dispute.created':
      return status === 'prevented' ? null : { state: 'applied', rank: 1 };
    case 'charge.dispute.updated':
      return status === 'prevented' ? { state: 'reversed', rank: 2 } : null;
    case 'charge.dispute.funds_withdrawn':
      return status === 'prevented' ? null : { state: 'applied', rank: 2 };
    case 'charge.dispute.funds_reinstated':
      return { state: 'reversed', rank: 2 };
    case 'charge.dispute.closed':
      if (status === 'won' || status === 'prevented') return { state: 'reversed', rank: 2 };
      return status === 'lost' ? { state: 'applied', rank: 2 } : null;
    default:
      return null;
  }
}

export function readDispute(envelope: Envelope): ParseResult {
  const dispute = readRefundOrDispute(envelope);
  if (!dispute.ok) return failed(dispute.reason);
  const state = disputeState(envelope.type, dispute.value.status);
  if (state === null) return ignored(envelope, 'the event of the dispute moves no money');
  const adjustment = adjustmentOf(dispute.value, { kind: 'chargeback', ...state });
  return done(envelope, state.state === 'applied' ? 'chargeback' : 'chargeback_reversed', { adjustment });
}
