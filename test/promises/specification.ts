import type { PromiseSection } from './promise.ts';

/** The promises of the interface specification that come before its table of endpoints. */
export const MODEL: readonly PromiseSection[] = [
  {
    title: 'What the service does',
    promises: {
      'click-recorded': 'a click is recorded, and the response says where the link leads',
      'install-attributed': "an install is attributed to an affiliate, and the app's user id is bound to it",
      'purchase-earns': 'a purchase webhook becomes a commission of the attributed affiliate',
      'commission-matures': 'commissions mature after the hold period',
      'paid-through-csv': 'commissions are paid out through a CSV',
      dashboards: 'founders and creators have dashboards',
      'json-bodies': 'request and response bodies are JSON, except the CSV',
      'malformed-json': 'a body that is not JSON is rejected',
      'epoch-milliseconds': 'instants are whole epoch milliseconds',
      'usd-cents': 'money is whole USD cents',
      'account-owns-apps': 'an account owns apps',
    },
  },
  {
    title: 'Resources',
    promises: {
      'app-id-and-name': 'an app has `id` and `name`',
      'app-settings': 'an app has a rate, attribution window, hold period, deferred window and subdomain',
      'affiliate-fields':
        'an affiliate has `id`, `name`, `email`, `status`, `defaultCommissionRateBps`; each except the id can be changed',
      'null-clears-rate': 'null clears the own rate, and the affiliate inherits the app rate',
      'effective-rate': 'the own rate applies, zero included; without one the app rate applies',
      'affiliate-row-totals': 'rows of affiliates have `clicks`, `installs`, `commissionCents`',
      'link-fields':
        'a link has `id`, `slug`, `destinationUrl`, `campaign`, `active`, `affiliateId`; the slug is unique and never changes',
      'slug-unique': 'slugs are unique',
      'link-row-totals': 'rows of links have `clicks`, `affiliateName`',
      'click-fields':
        'a click takes `customerAppId`, `slug`, `ipHash`, `userAgent`, `claimToken`, `clickedAt`',
      'address-hashed': 'an address is never stored, only a hash of it',
      'attribution-fields': 'an attribution has `attributionId`, `affiliateId`, `deviceId`, `customerUserId`',
      'commission-fields':
        'a commission has `id`, `affiliateId`, `status` and the rate at the time of calculation',
      'rate-snapshot': '`rateBps` is a snapshot',
      'payout-id-and-count':
        'a payout has an id, `affiliateId`, and `itemCount`, the number of rows of its CSV',
      'event-unique': 'an event is unique by source and source event id',
      'delivery-row': 'a delivery has `signatureValid`, `processingStatus`, `lastError`, number of events',
      'no-raw-payload': 'no endpoint returns a raw payload',
      'no-undocumented-field': 'no response has a field beyond its description',
    },
  },
  {
    title: 'States and transitions',
    promises: {
      'pending-to-paid': 'a `pending` row that is due becomes `matured` and `paid` in one export',
      'matured-to-paid': 'a `matured` row is paid by an export, which creates a payout and returns its rows',
      'not-due-not-paid': 'a row that is not due is not paid',
      'paid-once': 'a second export does not pay a row again',
      'paid-is-final': 'no transition leads out of `paid`',
      'webhook-returns-commission': 'a webhook returns the id of its commission, or null',
      'inactive-affiliate-earns-nothing':
        'an affiliate that is paused or removed earns no further commissions',
      'inactive-affiliate-keeps-rows':
        'the commissions of an affiliate that is paused or removed stay as they are',
      'inactive-affiliate-is-paid': 'the commissions of an affiliate that is paused or removed are paid',
      'link-active-toggle': 'a link is deactivated and activated, and keeps its slug',
      'link-activated-again': 'a link that is activated again counts clicks',
    },
  },
];

/** The promises of the interface specification that come after its table of endpoints. */
export const PROTOCOL: readonly PromiseSection[] = [
  {
    title: 'Lists',
    promises: {
      'list-shape': 'each list returns `{ items, nextCursor }`; null marks the last page',
      'list-limit': '`limit` is 50 by default, 100 at most',
      'cursor-continues': 'the next page starts where the previous page ended',
      'affiliates-filter-and-sort':
        'affiliates are filtered by `status`; `sort` is `created`, `name`, `earnings`',
      'sort-by-earnings': '`sort=earnings` lists affiliates by lifetime commission, the largest first',
      'links-filter': 'links are filtered by `affiliateId` and `active`',
      'commissions-filter': 'commissions are filtered by `affiliateId`, `status`, `from`, `to`',
      'payouts-filter': 'payouts are filtered by `affiliateId`',
    },
  },
  {
    title: 'Writes',
    promises: {
      'bulk-response': 'a bulk call returns 200 with `created` and `failed`',
      'bulk-at-most-100': 'a bulk call takes at most 100 rows',
      'bulk-schema-rejects-batch': 'a row that violates the schema rejects the batch',
      'bulk-row-fails-alone':
        'a row that conflicts with the state fails alone; `failed[].index` is its index',
      'slug-taken': '409 for a slug that is taken',
      'slug-not-renamed': 'a slug cannot be renamed',
      'new-rate-not-retroactive': 'a new rate is not retroactive',
    },
  },
  {
    title: 'Diagnostics',
    promises: {
      'identity-diagnostic':
        'the identity diagnostic has `ok`, `no_overlap`, `no_data`; samples of both sides; `truncated`',
      'unattributed-likely-cause':
        'an unattributed event has a `likelyCause`, which is true, explained, and cured by the fix that it states',
      'delivery-diagnostic':
        'deliveries are listed with `signatureValid`, `processingStatus`, `lastError`, number of events',
      'user-id-field': 'each provider has its own field for the user id',
    },
  },
  {
    title: 'Authentication',
    promises: {
      'key-form':
        'keys are sent as a bearer token; SDK keys begin with `pk_live_`, account keys end their prefix with `sk_live_`',
      'sdk-key-elsewhere': 'an SDK key is rejected outside `/sdk`',
      'account-key-on-sdk': 'an account key is rejected on `/sdk`',
      'clicks-need-no-key': '`/clicks` requires no key',
      'foreign-resource-404': 'the resources of another account are a 404, like unknown ones',
      'foreign-id-inside-app': 'an id of another account inside an app is a 404, too',
      'missing-permission': '403 without the permission',
      'permission-per-route': 'each route requires its documented permission',
      'payout-not-by-default': '`payout` is never granted by default',
      'no-account-over-api': 'no key creates accounts or account keys',
      'webhook-static-token': 'webhooks of RevenueCat and Adapty are verified by a static token',
      'webhook-stripe-hmac': 'webhooks of Stripe are verified by an HMAC signature header',
      'webhook-paddle-hmac': 'webhooks of Paddle are verified by an HMAC signature header',
      'webhook-svix': 'webhooks of Superwall are verified as by a webhook-signing service',
      'webhook-failed-check': 'a failed check is a 401',
    },
  },
  {
    title: 'Events',
    promises: {
      'event-stored': 'an event is verified, stored raw and normalized, and has an `eventId`',
      'event-duplicate': 'a repeated event returns `{ duplicate: true }`',
      'event-attributed': 'an event is attributed through the user id that `identify` bound',
      'event-unattributed': 'paid events without a commission are in the unattributed diagnostic',
      'event-delivery-listed': 'deliveries are in the webhooks diagnostic',
    },
  },
  {
    title: 'Errors',
    promises: {
      'error-400-bulk-row': '400 for an invalid row of a bulk call',
      'error-401-install': '401 for `/sdk/install` without a valid key',
      'error-401-webhook': '401 for a webhook that cannot be verified',
      'error-403-permission': '403 for a missing permission',
      'error-404-no-click': '404 without an attributable click',
      'error-404-unknown': "404 for an unknown id and for another account's",
      'error-409-slug': '409 for a slug that is taken',
    },
  },
  {
    title: 'Limits and versioning',
    promises: {
      'page-of-50': 'lists have pages of 50 rows, at most 100',
      'page-over-100': 'a larger `limit` is rejected',
      'bulk-limit': 'a bulk call takes at most 100 rows',
      'paths-unversioned': 'paths are as specified, without a version',
    },
  },
];
