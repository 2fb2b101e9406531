import type { Provider } from '../provider.ts';
import { weakKeyProblem, weakTokenProblem } from '../shared/secret-strength.ts';
import { schemeOf, verifySignedToken } from '../shared/signed-token.ts';
import { TOKEN_HEADER } from '../shared/static-token.ts';
import { isTimestampedHmacOnTime, timestampedHmacTime } from '../shared/timestamped-hmac.ts';
import { revenuecatExports } from './export.ts';
import { parse } from './parse.ts';
import { revenuecatSample } from './sample.ts';
import { SIGNATURES } from './signatures.ts';

/** RevenueCat: a static `Authorization` value and, if the founder wants it, a signature of time and body; USD prices as decimal numbers, one event per body. */
export const revenuecat: Provider = {
  name: 'revenuecat',
  title: 'RevenueCat',
  scheme: 'static_token',
  environmentFrom: 'body',
  proofHeaders: [TOKEN_HEADER],
  setupHint:
    'In RevenueCat, open Integrations > Webhooks and add a webhook with this URL. Enter the secret, exactly as shown, as the Authorization header value. Have the app pass its own user id to logIn() before the first purchase; it arrives as app_user_id.',
  codes: {
    attribute:
      'Have the app ask for the code and set it as the subscriber attribute tributary_code, with setAttributes() of the RevenueCat SDK, before the purchase.',
    app_store:
      'Buy with an offer code of the App Store. Its code here has to be the reference name of the offer, not what customers type.',
    play_store:
      'Buy with the offer of Google Play. Its code here has to be the name that RevenueCat states as offer_code.',
    campaign:
      'Have the measurement tool set the subscriber attribute $campaign to the code before the purchase.',
  },
  secretProblem: weakTokenProblem,
  bodySignature: {
    headers: SIGNATURES.map(({ header }) => header),
    secretProblem: (secret) => weakKeyProblem(secret, 'RevenueCat'),
  },
  verify: (request, secret) => verifySignedToken(request, secret, SIGNATURES),
  signedAt: (request) => timestampedHmacTime(request, schemeOf(request, SIGNATURES)),
  isOnTime: (request) => isTimestampedHmacOnTime(request, schemeOf(request, SIGNATURES)),
  amounts: 'decimal',
  parse,
  sample: revenuecatSample,
  exports: revenuecatExports,
};
