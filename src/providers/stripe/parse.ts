import type { ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import { readDispute, readRefund } from './adjustments.ts';
import { envelopeSchema, ignored } from './envelope.ts';
import type { Envelope } from './envelope.ts';
import {
  readCharge,
  readInvoicePaid,
  readInvoicePayment,
  readPaymentIntent,
  readSession,
} from './payments.ts';
import { readSubscription } from './subscriptions.ts';

const SAME_MONEY = 'the same money comes as an invoice or a checkout session, which is counted instead';

/**
 * One type, one reader. Of the two families that tell of refunds only `refund.*` is read: it has one id, amount and
 * status per refund, where `charge.refunded` states a running total. Reading both would take the same money back twice.
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
      return ignored(envelope, 'the same invoice comes as invoice.paid, which is counted instead');
    case 'charge.succeeded':
      return readCharge(envelope, SAME_MONEY);
    case 'payment_intent.succeeded':
      return readPaymentIntent(envelope, SAME_MONEY);
    case 'charge.refunded':
      return readCharge(
        envelope,
        'each refund comes as refund.created or refund.updated, which is counted instead',
      );
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
    case 'charge.refund.updated':
      return readRefund(envelope);
    case 'charge.dispute.created':
    case 'charge.dispute.funds_withdrawn':
    case 'charge.dispute.funds_reinstated':
    case 'charge.dispute.closed':
      return readDispute(envelope);
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return readSubscription(envelope);
    default:
      return ignored(
        envelope,
        `events of type ${read.typeName(envelope.type)} carry nothing that counts here`,
      );
  }
}

export function parse(body: Buffer): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const format = json.value['object'];
  if (typeof format === 'string' && format.startsWith('v2.')) {
    return normalized.ignored('a thin event carries no data: the endpoint must send snapshot events');
  }
  const envelope = read.readAs(envelopeSchema, json.value);
  return envelope.ok ? readType(envelope.value) : failed(envelope.reason);
}
