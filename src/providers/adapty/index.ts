import type { Provider } from '../provider.ts';
import { weakTokenProblem } from '../shared/secret-strength.ts';
import { TOKEN_HEADER, verifyStaticToken } from '../shared/static-token.ts';
import { adaptyExports } from './export.ts';
import { parse } from './parse.ts';
import { adaptySample } from './sample.ts';
import { setupCheck } from './setup-check.ts';

/** Adapty: a static `Authorization` value, USD prices as decimal numbers, one event per body. */
export const adapty: Provider = {
  name: 'adapty',
  title: 'Adapty',
  scheme: 'static_token',
  environmentFrom: 'body',
  proofHeaders: [TOKEN_HEADER],
  setupHint:
    "In Adapty, open Integrations > Webhook. Enter this URL as both the production and the sandbox endpoint URL, and the secret, exactly as shown, as both Authorization header values. Keep the default event names. Have the app pass its own user id to Adapty's identify() before the first purchase; it arrives as customer_user_id.",
  codes: {
    app_store:
      'Buy with the promotional offer. Its code here has to be the id that you gave the offer in Adapty, which it states as promotional_offer_id, and not that of App Store Connect.',
    play_store:
      'Buy with the offer of Google Play. Its code here has to be the id that you gave the offer in Adapty, which it states as promotional_offer_id.',
  },
  secretProblem: weakTokenProblem,
  verify: verifyStaticToken,
  amounts: 'decimal',
  parse,
  setupCheck,
  sample: adaptySample,
  exports: adaptyExports,
};
