import type { ListedAccounts, ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import { readCreditNote, readDispute, readRefund, readRefundedCharge } from './adjustments.ts';
import { envelopeSchema, ignored } from './envelope.ts';
import type { Envelope } from './envelope.ts';
import {
  readDiscount,
  readInvoicePaid,
  readInvoicePayment,
  readPaymentIntent,
  readSession,
  readSucceededCharge,
} from './payments.ts';
import { readSubscription } from './subscriptions.ts';

const CONNECTED_ACCOUNT =
  "the event belongs to a connected account of Stripe Connect that the app does not list; if its sales are yours, add it to the app's setting stripeAccounts and reprocess the delivery";

/**
 * Reads an event by its type. Of the two families that report refunds one counts per endpoint: `refund.*`, which has one id,
 * amount and status per refund, or on older API versions `charge.refunded`, which states a running total. Counting both would
 * take the same money back twice.
 */
function readType(envelope: Envelope): ParseResult {
  switch (envelope.type) {
    case 'invoice.paid':
      return readInvoicePaid(envelope);
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return readSession(envelope);
    case 'invoice_payment.paid':
      return readInvoicePayment(envelope);
    case 'invoice.payment_succeeded':
      return ignored(envelope, 'the same invoice arrives as invoice.paid, which is counted instead');
    case 'charge.succeeded':
      return readSucceededCharge(envelope);
    case 'payment_intent.succeeded':
      return readPaymentIntent(envelope);
    case 'charge.refunded':
      return readRefundedCharge(envelope);
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
    case 'charge.refund.updated':
      return readRefund(envelope);
    case 'charge.dispute.created':
    case 'charge.dispute.updated':
    case 'charge.dispute.funds_withdrawn':
    case 'charge.dispute.funds_reinstated':
    case 'charge.dispute.closed':
      return readDispute(envelope);
    case 'credit_note.created':
    case 'credit_note.updated':
    case 'credit_note.voided':
      return readCreditNote(envelope);
    case 'customer.discount.created':
      return readDiscount(envelope);
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return readSubscription(envelope);
    default:
      return ignored(envelope, `events of type ${read.typeName(envelope.type)} do not affect commissions`);
  }
}

/**
 * Returns what an event of an account counts that the app does not list: no payment and no user, but refunds, disputes and the
 * names of payments. A payment that was stored while its account was listed is taken back like any other.
 */
function ofUnlistedAccount(envelope: Envelope): ParseResult {
  const result = readType(envelope);
  if (result.outcome === 'failed' || result.event === null) return ignored(envelope, CONNECTED_ACCOUNT);
  const { kind, adjustment, paymentAliases } = result.event;
  return ignored(envelope, CONNECTED_ACCOUNT, {
    ...(adjustment === null ? {} : { kind, adjustment }),
    paymentAliases,
  });
}

/** Parses a body. Payments of a connected account count only if it is one of `accounts`. */
export function parse(body: Buffer, accounts: ListedAccounts = []): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const format = json.value['object'];
  if (typeof format === 'string' && format.startsWith('v2.')) {
    return normalized.ignored(
      'a thin event contains no data; configure the Stripe endpoint to send snapshot events',
    );
  }
  const envelope = read.readAs(envelopeSchema, json.value);
  if (!envelope.ok) return failed(envelope.reason);
  const { account } = envelope.value;
  return account === null || accounts === 'all' || accounts.includes(account)
    ? readType(envelope.value)
    : ofUnlistedAccount(envelope.value);
}
