import type { ProviderName } from '../../src/providers/index.ts';
import type { Currency, Report } from '../../test/support/money-facts.ts';
import {
  adaptyEvent,
  adaptyRefund,
  paddleAdjustment,
  paddleSubscription,
  paddleTransaction,
  revenuecatEvent,
  revenuecatRefund,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeRefund,
  stripeSubscription,
  superwallEvent,
  superwallRefund,
} from '../provider-payloads.ts';
import type { Payload } from '../provider-payloads.ts';

/*
 * An event in two forms: as its provider sends it, and what it states in the words of the provider's documentation, for
 * the model. Neither form is made from the other.
 */

/** Which event of a sale, of whom, and when. Times are relative to the start of the run. */
export interface PlannedEvent {
  readonly provider: ProviderName;
  readonly shape: Shape;
  readonly eventId: string;
  /** The common part of the provider's ids. */
  readonly sale: string;
  /** The user that the event names; null names none. */
  readonly user: string | null;
  readonly minor: number;
  readonly currency: Currency;
  /** Ms after the start of the run; mostly negative. */
  readonly at: number;
  /** The id of the refund or dispute, for its events. */
  readonly takeId: string;
  readonly isSandbox: boolean;
}

export type Shape =
  | 'purchase'
  | 'session'
  | 'subscription'
  | 'refund'
  | 'refund failed'
  | 'dispute'
  | 'dispute won'
  | 'dispute lost';

/** The reference of a sale's payment, as the ledger names it. */
export function refOf({ provider, sale }: Pick<PlannedEvent, 'provider' | 'sale'>): string {
  switch (provider) {
    case 'stripe':
      return `in_${sale}`;
    case 'paddle':
      return `txn_${sale}`;
    default:
      return `9${sale}`;
  }
}

/** Builds the event in its provider's format. */
export function payloadOf(event: PlannedEvent, epoch: number): Payload {
  const { provider, shape, eventId, sale, user, minor, currency, isSandbox, takeId } = event;
  const occurredAt = epoch + event.at;
  const ids = { eventId, occurredAt };
  switch (provider) {
    case 'revenuecat': {
      const environment = isSandbox ? 'SANDBOX' : 'PRODUCTION';
      const userId = user ?? `$RCAnonymousID:${sale}`;
      const fields = { ...ids, userId, environment, transactionId: refOf(event), usd: minor / 100 };
      return shape === 'purchase' ? revenuecatEvent(fields) : revenuecatRefund(fields);
    }
    case 'adapty': {
      const environment = isSandbox ? 'Sandbox' : 'Production';
      const fields = { ...ids, userId: user, environment, transactionId: refOf(event), usd: minor / 100 };
      return shape === 'purchase' ? adaptyEvent(fields) : adaptyRefund(fields);
    }
    case 'superwall': {
      const environment = isSandbox ? 'SANDBOX' : 'PRODUCTION';
      const fields = { ...ids, userId: user, environment, transactionId: refOf(event), usd: minor / 100 };
      return shape === 'purchase' ? superwallEvent(fields) : superwallRefund(fields);
    }
    case 'paddle': {
      const transactionId = refOf(event);
      const subscriptionId = `sub_${sale}`;
      if (shape === 'purchase')
        return paddleTransaction({ ...ids, transactionId, subscriptionId, amount: minor, userId: user });
      if (shape === 'subscription') return paddleSubscription({ ...ids, subscriptionId, userId: user });
      return paddleAdjustment({
        ...ids,
        transactionId,
        adjustmentId: takeId,
        action: shape.startsWith('refund') ? 'refund' : 'chargeback',
        status: shape === 'refund failed' || shape === 'dispute won' ? 'reversed' : 'approved',
        amount: minor,
      });
    }
    case 'stripe': {
      const environment = isSandbox ? 'sandbox' : 'production';
      const money = { ...ids, environment, amount: minor, currency } as const;
      const paymentIntentId = `pi_${sale}`;
      const chargeId = `ch_${sale}`;
      const names = { subscriptionId: `sub_${sale}`, customerId: `cus_${sale}` };
      switch (shape) {
        case 'purchase':
          return stripeInvoicePaid({
            ...money,
            ...names,
            userId: user,
            invoiceId: refOf(event),
            legacy: { chargeId, paymentIntentId },
          });
        case 'session':
          return stripeCheckoutSession({
            ...money,
            userId: user,
            customerId: null,
            paymentIntentId,
            invoiceId: refOf(event),
          });
        case 'subscription':
          return stripeSubscription({ ...ids, environment, ...names, userId: user });
        case 'refund':
        case 'refund failed':
          return stripeRefund({
            ...money,
            id: takeId,
            paymentIntentId,
            chargeId: null,
            status: shape === 'refund' ? 'succeeded' : 'failed',
          });
        default:
          return stripeDispute({
            ...money,
            id: takeId,
            paymentIntentId: null,
            chargeId,
            type: shape === 'dispute' ? 'charge.dispute.created' : 'charge.dispute.closed',
            status: shape === 'dispute' ? 'needs_response' : shape === 'dispute won' ? 'won' : 'lost',
          });
      }
    }
  }
}

/** Tells the model what the event states. Undefined for a sandbox event, which states nothing about money. */
export function reportOf(event: PlannedEvent, epoch: number): Report | undefined {
  const { provider, shape, eventId, sale, user, minor, currency, takeId, isSandbox } = event;
  if (isSandbox) return undefined;
  const at = epoch + event.at;
  const ref = refOf(event);
  const users = user === null ? [] : [user];
  const isStripe = provider === 'stripe';
  const keys = isStripe || provider === 'paddle' ? [`sub_${sale}`] : [];
  const store = provider === 'stripe' || provider === 'paddle' ? provider : 'app_store';
  const payment = { ref, store, minor, currency, at, users, keys } as const;
  switch (shape) {
    case 'purchase': {
      const same = isStripe
        ? ([
            [ref, `pi_${sale}`],
            [ref, `ch_${sale}`],
          ] as const)
        : [];
      return { eventId, payment, same };
    }
    case 'session':
      return { eventId, payment: { ...payment, keys: [] }, same: [[ref, `pi_${sale}`]] };
    case 'subscription':
      return user === null ? { eventId } : { eventId, names: [{ key: `sub_${sale}`, user }] };
    default: {
      const isBack = shape === 'refund failed' || shape === 'dispute won';
      const isEnd = shape !== 'refund' && shape !== 'dispute';
      const reference = !isStripe ? ref : shape.startsWith('refund') ? `pi_${sale}` : `ch_${sale}`;
      return { eventId, take: { id: takeId, ref: reference, minor, at, isEnd, isBack, group: takeId } };
    }
  }
}
