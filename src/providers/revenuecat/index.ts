import type { Provider } from '../provider.ts';
import { weakTokenProblem } from '../shared/secret-strength.ts';
import { TOKEN_HEADER, verifyStaticToken } from '../shared/static-token.ts';
import { revenuecatExports } from './export.ts';
import { parse } from './parse.ts';
import { revenuecatSample } from './sample.ts';

/** RevenueCat: a static `Authorization` value, USD prices as decimal numbers, one event per body. */
export const revenuecat: Provider = {
  name: 'revenuecat',
  title: 'RevenueCat',
  scheme: 'static_token',
  environmentFrom: 'body',
  proofHeaders: [TOKEN_HEADER],
  setupHint:
    'In RevenueCat, open Integrations > Webhooks and add a webhook with this URL. Enter the secret, exactly as shown, as the Authorization header value. Have the app pass its own user id to logIn() before the first purchase; it arrives as app_user_id.',
  secretProblem: weakTokenProblem,
  verify: verifyStaticToken,
  amounts: 'decimal',
  parse,
  sample: revenuecatSample,
  exports: revenuecatExports,
};
