import type { Provider } from '../provider.ts';
import { weakKeyProblem } from '../shared/secret-strength.ts';
import {
  isTimestampedHmacOnTime,
  timestampedHmacTime,
  verifyTimestampedHmac,
} from '../shared/timestamped-hmac.ts';
import type { TimestampedHmacScheme } from '../shared/timestamped-hmac.ts';
import { PADDLE_MINOR_UNITS } from './currencies.ts';
import { paddleExports } from './export.ts';
import { parse } from './parse.ts';
import { paddleSample } from './sample.ts';

/** Paddle signs every attempt again, so its own libraries tolerate an age of only five seconds, to the millisecond. */
const SIGNATURE: TimestampedHmacScheme = {
  header: 'paddle-signature',
  separator: ';',
  timeKey: 'ts',
  signatureKey: 'h1',
  joint: ':',
  toleranceMs: 5_000,
  clockStepMs: 1,
};

/** Paddle Billing: a signature over time and raw body, amounts as text in minor units, payouts often in USD. */
export const paddle: Provider = {
  name: 'paddle',
  title: 'Paddle',
  scheme: 'hmac',
  environmentFrom: 'secret',
  proofHeaders: [SIGNATURE.header],
  setupHint:
    "In Paddle, open Developer tools > Notifications and add a webhook destination with this URL for the events transaction.completed, adjustment.created, adjustment.updated, subscription.created, subscription.trialing, subscription.updated and subscription.canceled. Copy the destination's secret key (pdl_ntfset_…) here, with the environment of that Paddle account. At the checkout, pass customData: { app_user_id: … } with the app's own user id. This server's clock must be accurate to five seconds.",
  codes: {
    paddle:
      'Have the customer enter the discount in the checkout. The code here needs the id of the discount (dsc_…), which transactions state.',
  },
  secretProblem: (secret) => {
    // The secret in the tests of Paddle's own library begins with pdl_ntf_.
    const [, key] = /^pdl_ntf(?:set)?_(.+)/s.exec(secret) ?? [];
    return key === undefined
      ? "This is not a notification destination's secret key: Paddle's begin with pdl_ntfset_. Copy it from the destination in Paddle; an API key does not work here."
      : weakKeyProblem(key, 'Paddle');
  },
  verify: (request, secret) => verifyTimestampedHmac(request, secret, SIGNATURE),
  signedAt: (request) => timestampedHmacTime(request, SIGNATURE),
  isOnTime: (request) => isTimestampedHmacOnTime(request, SIGNATURE),
  amounts: PADDLE_MINOR_UNITS,
  parse,
  sample: paddleSample,
  exports: paddleExports,
};
