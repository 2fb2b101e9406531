import type { Provider } from '../provider.ts';
import { weakKeyProblem } from '../shared/secret-strength.ts';
import {
  isTimestampedHmacOnTime,
  timestampedHmacTime,
  verifyTimestampedHmac,
} from '../shared/timestamped-hmac.ts';
import type { TimestampedHmacScheme } from '../shared/timestamped-hmac.ts';
import { STRIPE_MINOR_UNITS } from './currencies.ts';
import { stripeExports } from './export.ts';
import { parse } from './parse.ts';
import { stripeSample } from './sample.ts';

const SIGNATURE: TimestampedHmacScheme = {
  header: 'stripe-signature',
  separator: ',',
  timeKey: 't',
  signatureKey: 'v1',
  joint: '.',
  toleranceMs: 300_000,
  clockStepMs: 1000,
};

/** Stripe: a signature over time and raw body, amounts in minor units of any currency, several events per payment. */
export const stripe: Provider = {
  name: 'stripe',
  title: 'Stripe',
  scheme: 'hmac',
  environmentFrom: 'body',
  proofHeaders: [SIGNATURE.header],
  setupHint:
    "In Stripe, open Developers > Webhooks and add an endpoint with this URL for the events invoice.paid, invoice_payment.paid, checkout.session.completed, checkout.session.async_payment_succeeded, customer.subscription.*, charge.succeeded, payment_intent.succeeded, refund.*, charge.dispute.* and credit_note.*, and charge.refunded and charge.refund.updated if the endpoint's API version is before 2024-10-28. Copy its signing secret (whsec_…) here. In Checkout, set client_reference_id and subscription_data.metadata.app_user_id to the app's own user id, and payment_intent_data.metadata.app_user_id if you capture payments later; on a payment intent of your own, set metadata.app_user_id.",
  codes: {
    stripe:
      'Have the webhook send checkout.session.completed, and let customers enter the promotion code in Checkout. For subscriptions that you create without Checkout, have it send customer.discount.created, too. The code here needs the id of the promotion code (promo_…), not that of its coupon.',
  },
  secretProblem: (secret) =>
    /^whsec_./.test(secret)
      ? weakKeyProblem(secret.slice('whsec_'.length), 'Stripe')
      : "This is not a webhook's signing secret: Stripe's begin with whsec_. Copy it from the endpoint in Stripe; an API key (sk_…) does not work here.",
  verify: (request, secret) => verifyTimestampedHmac(request, secret, SIGNATURE),
  signedAt: (request) => timestampedHmacTime(request, SIGNATURE),
  isOnTime: (request) => isTimestampedHmacOnTime(request, SIGNATURE),
  amounts: STRIPE_MINOR_UNITS,
  parse,
  sample: stripeSample,
  exports: stripeExports,
};
