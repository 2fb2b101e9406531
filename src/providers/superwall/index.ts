import type { Provider } from '../provider.ts';
import { isSvixOnTime, SVIX_HEADERS, svixSecretProblem, svixTime, verifySvix } from '../shared/svix.ts';
import { superwallExports } from './export.ts';
import { parse } from './parse.ts';
import { superwallSample } from './sample.ts';

/** Superwall: delivered and signed by Svix, USD prices as decimal numbers, one event per body. */
export const superwall: Provider = {
  name: 'superwall',
  title: 'Superwall',
  scheme: 'hmac',
  environmentFrom: 'body',
  proofHeaders: SVIX_HEADERS,
  setupHint:
    "Create the webhook with Superwall's API (POST /v2/projects/PROJECT/webhook_endpoints), with this URL and the format superwall. Webhooks created in the dashboard use the format V2, which is read only where it names the facts as the legacy format does: other deliveries are kept as failed, and a version that reads them can reprocess them. Copy the signing secret (whsec_…) here. Have the app pass its own user id (on iOS, a UUID) to Superwall's identify() before the first purchase; it arrives as originalAppUserId. The user attribute app_user_id is a second source.",
  codes: {
    app_store:
      'Buy with an offer code of the App Store. Its code here has to be the reference name of the offer, not what customers type.',
    play_store:
      'Buy with the offer of Google Play. Its code here has to be the name that Superwall states as offerCode.',
  },
  secretProblem: svixSecretProblem,
  verify: verifySvix,
  signedAt: svixTime,
  isOnTime: isSvixOnTime,
  amounts: 'decimal',
  parse,
  sample: superwallSample,
  exports: superwallExports,
};
