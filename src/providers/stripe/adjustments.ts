import * as z from 'zod';
import type { AdjustmentFact } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import { done, ignored, object, originalAmount, STORE } from './envelope.ts';
import type { Envelope } from './envelope.ts';
import { amount, ref } from './objects.ts';

/** Refunds and disputes: money that names the payment it came from. */
const moneyBackSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount,
  status: read.optionalText,
  payment_intent: ref,
  charge: ref,
});
type MoneyBack = z.infer<typeof moneyBackSchema>;

function readMoneyBack(envelope: Envelope): Read<MoneyBack & { readonly paymentRef: string }> {
  const back = object(envelope, moneyBackSchema);
  if (!back.ok) return back;
  const paymentRef = back.value.payment_intent ?? back.value.charge;
  if (paymentRef === null) {
    return { ok: false, reason: 'data.object names neither a payment_intent nor a charge' };
  }
  return { ok: true, value: { ...back.value, paymentRef } };
}

function adjustmentOf(
  back: MoneyBack & { readonly paymentRef: string },
  state: Pick<AdjustmentFact, 'kind' | 'state' | 'rank'>,
): AdjustmentFact {
  return {
    ...state,
    store: STORE,
    ref: back.id,
    paymentRef: back.paymentRef,
    ...originalAmount(back.currency, back.amount),
  };
}

/** One refund keeps its id through all its events; its status says whether the money left. */
export function readRefund(envelope: Envelope): ParseResult {
  const refund = readMoneyBack(envelope);
  if (!refund.ok) return failed(refund.reason);
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
      return ignored(envelope, 'the refund is not done yet: another event tells how it ends');
  }
}

/** How far each event of a dispute decides: money moving outranks its opening, its end outranks both. */
function disputeState(type: string, status: string | null): Pick<AdjustmentFact, 'state' | 'rank'> | null {
  switch (type) {
    case 'charge.dispute.created':
      return status?.startsWith('warning_') === true ? null : { state: 'applied', rank: 1 };
    case 'charge.dispute.funds_withdrawn':
      return { state: 'applied', rank: 1 };
    case 'charge.dispute.funds_reinstated':
      return { state: 'reversed', rank: 2 };
    case 'charge.dispute.closed':
      if (status === 'won') return { state: 'reversed', rank: 3 };
      return status === 'lost' ? { state: 'applied', rank: 3 } : null;
    default:
      return null;
  }
}

export function readDispute(envelope: Envelope): ParseResult {
  const dispute = readMoneyBack(envelope);
  if (!dispute.ok) return failed(dispute.reason);
  const state = disputeState(envelope.type, dispute.value.status);
  if (state === null) return ignored(envelope, 'the dispute moves no money');
  const adjustment = adjustmentOf(dispute.value, { kind: 'chargeback', ...state });
  return done(envelope, state.state === 'applied' ? 'chargeback' : 'chargeback_reversed', { adjustment });
}
