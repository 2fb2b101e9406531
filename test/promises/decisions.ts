import type { PromiseSection } from './promise.ts';

/** Decisions about what the interface specification leaves open: the model, authentication, attribution. */
const IDENTITY: readonly PromiseSection[] = [
  {
    title: '1. Units, ids, time',
    promises: {
      'instant-in-body': 'instants are whole epoch ms in bodies and queries',
      'instant-in-filter': 'instants are whole epoch ms in filters',
      'instant-in-seconds':
        '400 for an instant before 2001 or more than 366 days ahead; in a filter, 0 is the beginning',
      'unknown-parameter-400': '400 under `/apps` for an unknown query parameter, which `path` names',
      'field-messages': 'the message for an invalid field says what the field takes',
      'broken-json-position': '400 for broken JSON with the line and column of the first error',
      'bearer-recognized': 'the diagnostics say when `Bearer ` in front of a token is the only difference',
      'iso-in-query': 'queries also take ISO 8601 with an offset',
      'exact-products': 'products of cents and basis points are exact',
      'one-rounding': 'an amount is rounded once, half away from zero',
      'typeid-prefix': 'ids are TypeIDs with the prefix of their resource',
      'malformed-id-not-found': 'an id with a wrong prefix or a malformed body is not found',
      'malformed-app-id-not-found': 'a malformed app id is not found',
      'device-id-form': 'a device id has 1 to 200 characters, none of them control characters',
    },
  },
  {
    title: '2. Settings of an app',
    promises: {
      'app-limit': '409 for more apps than the account can have, also for calls at the same time',
      'app-fields-and-defaults': '`GET /apps/:appId` has the app and its settings, which have defaults',
      'setting-range-ends': 'the ends of each range are accepted',
      'setting-out-of-range': '400 for a value beyond a range and for an unknown field',
      'window-from-click': 'the window counts from click to first open',
      'deferred-off': 'a deferred window of 0 switches deferred matches off',
      'subdomain-from-name': 'the subdomain is a DNS label made from the name',
      'subdomain-unique': 'the subdomain is unique across the service',
      'subdomain-kept': 'a former subdomain stays with its app, and its links go on redirecting',
      'subdomain-limit': '409 for more than 20 subdomains of one app',
      'subdomain-reserved': 'names such as `www`, `api` and `login` are reserved',
      'settings-patch': 'a patch takes any subset, and returns the same object as GET',
      'rate-and-hold-fixed': 'rate and hold period are those of the calculation, fixed on the row',
      'status-fixed': 'the status of the affiliate is that of the calculation, fixed on the row',
    },
  },
  {
    title: '3. Keys and authentication',
    promises: {
      'key-parts': 'account and SDK keys have a prefix, 43 random characters, and a checksum of 6',
      'key-checksum': 'the checksum is a CRC32',
      'key-hash-stored': 'only the SHA-256 of a key is stored, with its first and last four characters',
      'key-hint-is-no-key': 'the shown part of a key does not authenticate',
      'key-401': '401 with `WWW-Authenticate: Bearer` for a missing, malformed, unknown or wrong-kind key',
      'key-revoked-or-expired': '401 for a revoked or expired key',
      'account-key-under-sdk': '401 for an account key under `/sdk`',
      'permission-before-lookup': '403 before any look-up',
      'foreign-id-same-bytes': "another account's id returns the same bytes as an unknown one",
      'order-401-403-400': 'errors take precedence in the order 401, 403, 400',
      'order-400-404': '400 takes precedence over 404',
      'order-404-409': '404 takes precedence over 409',
      'key-permissions': 'a new key reads and writes; `payout` must be requested',
      'accounts-by-command-line':
        'accounts and account keys are created by the command line or in a console session, never with a key',
      'account-key-grace': 'a rotated account key works for another day; a grace period of 0 ends it at once',
      'sdk-key-grace': 'a rotated SDK key works until its grace period ends',
      'new-app': '`POST /apps` takes a name and any settings, and returns 201 with the SDK key',
      'sdk-key-rotation': 'a rotation returns `sdkKey` and `previousKeyExpiresAt`',
      'secret-generated': 'a secret is generated and shown once where the provider uses a static token',
      'secret-never-returned': 'a secret that was given is never returned',
      'secret-grace': 'the previous secret ends with its grace period',
      'rotation-last-millisecond':
        'a rotated key and a rotated secret work until the last millisecond of their grace period',
      'revoked-secret-at-once':
        'a secret that was revoked or replaced in one process is refused by every process from then on',
      'secret-grace-verifies': 'the previous secret verifies requests during its grace period',
      'webhooks-never-show-secret':
        '`GET …/webhooks` returns the url and whether a secret is configured, never the secret',
      'webhooks-last-delivery': '`GET …/webhooks` returns the last delivery',
      'secret-encrypted': 'secrets are encrypted, and stored with the id of the encryption key',
      'stored-response-encrypted': 'stored responses that contain a key are encrypted',
      'first-key-encrypts': 'the first encryption key encrypts, every key decrypts',
      'ciphertext-bound': 'a ciphertext that was changed or moved cannot be decrypted',
      'live-secrets-limit':
        'at most three secrets of an app and provider are valid at once; a fourth ends the oldest',
      'secret-strength':
        'a static token has at least 24 characters, a Svix key at least 16 bytes, and a signing secret its whole length',
      'paddle-environment-required': 'a secret of Paddle requires an `environment`',
      'paddle-environment-decides': 'the environment of its secret decides for Paddle',
      'secret-environment-default': 'elsewhere the environment is `production` unless the body sets it',
    },
  },
  {
    title: '4. Clicks, install, identify',
    promises: {
      'click-required-fields': 'a click has required and optional fields',
      'clock-tolerance':
        'times up to five minutes in the future are accepted, one millisecond more is a 400: `clickedAt`, `firstOpenAt`, `identifiedAt`',
      'clicked-at-default': '`clickedAt` defaults to now',
      'click-unknown-404': '404 for an unknown app or slug',
      'click-inactive-link': '404 for an inactive link or a removed affiliate; 200 for a paused one',
      'paused-earns-nothing': 'a paused affiliate earns nothing',
      'click-repeat': 'the same token returns the same click, which is counted once',
      'head-not-counted': 'HEAD never counts',
      'head-not-on-clicks': '`/clicks` does not support HEAD',
      'bot-not-counted': 'bots get a response and are not counted',
      'bot-stored': 'clicks of bots are stored',
      'user-agent-length': 'the first 512 characters of a user agent are stored',
      'slug-case-insensitive': 'slugs are unique per app, regardless of case',
      'slug-form': 'a slug has 2 to 64 characters of `A-Z a-z 0-9 _ -`',
      'token-before-code': 'the token decides, the code is the fallback',
      'token-window-stored':
        'the stored decision holds for a click exactly as old as the window and one millisecond older',
      'unknown-token-falls-back': 'an unknown token falls back to the code',
      'no-touch-400': '400 without token and code, unless the install is deferred',
      'code-touch-is-its-entry':
        'the touch of a code is its entry, or the report of it, so that it attributes no earlier purchase',
      'window-inclusive': 'a day has 86,400,000 ms, and both ends are inside the window',
      'window-to-the-millisecond': 'the window ends to the millisecond, over HTTP; a code never expires',
      'token-unique-per-app': 'a claim token is unique per app',
      'code-form': 'a code is a slug, regardless of case, or an affiliate id',
      'touch-of-own-app': 'a token and a code are found in their own app only',
      'first-attribution-stays': 'the first attribution of a device stays; a repeat returns it',
      'first-reported-wins': 'the first reported touch wins, even when another click is older',
      'losing-touches-recorded': 'losing touches are recorded',
      'token-first-device': 'a token belongs to the first device that redeems it',
      'outside-window-404': '404 for a click outside the window',
      'deferred-by-address-hash':
        'a deferred match uses the keyed hash of the address, on clicks of the own redirect',
      'deferred-ipv6-network': 'a deferred match of an IPv6 address uses its /64',
      'deferred-candidates': 'a deferred match takes unclaimed clicks of the same app whose link is active',
      'deferred-window': 'a deferred match takes clicks inside its window',
      'deferred-newest-click': 'a deferred match of one affiliate takes the newest click',
      'deferred-ambiguous': 'a deferred match of two affiliates is a 409 `ambiguous_match`',
      'deferred-none': '404 without a deferred match',
      'hash-key-daily': 'the hash key rotates daily',
      'hash-key-destroyed': 'the hash key is destroyed after the longest window',
      'match-method': '`matchMethod` is `claim_token` or `code`',
      'sdk-unattributed': '200 with nulls instead of 404 for an install with `acceptUnattributed`',
      'sdk-touch': 'with `acceptUnattributed`, `touch` says whether the touch won, came second or is unknown',
      'sdk-identify-affiliate':
        'with `acceptUnattributed`, identify answers with the affiliate of the device',
      'identify-about-the-device':
        'the answer to an identify is about its device, and tells nothing of other devices of the user or of an erasure',
      'test-key-works': 'a test key attributes and identifies like a live key',
      'test-key-counts-nothing':
        'what a test key reports is in no sum and takes no click, and a live key then attributes the device anew',
      'test-key-never-earns': 'no binding, payment or commission can reference a test attribution',
      'test-key-rotation':
        'the test key is created by its first rotation, and rotates independently of the live key',
      'test-key-diagnosis': 'the diagnostics list what a test key reported apart from everything else',
      'sdk-version':
        'the SDK and its version are recorded on the attribution and listed in the identity diagnostic',
      'match-method-deferred': '`matchMethod` is `deferred` for a deferred match',
      'identify-before-install': 'identify without an attribution is a 404, and is stored and bound later',
      'identify-any-order': 'install and identify bind the user in any order and concurrently',
      'user-first-attribution': 'a user id belongs to its first attribution; several user ids share a device',
      'users-per-device': '409 for an eleventh user of a device',
      'identity-verification':
        'an app can require that its server signs user ids: 401 without a signature, 403 with a wrong one',
      'identity-secret':
        'the identity secret can be read and rotated; the previous one works until its grace period ends',
      'identify-repeat': 'a repeated identify returns the same response',
      'live-binding-any-date': 'a live delivery uses the current binding, whatever its date',
      'heal-once': 'a late identify heals earlier payments, once',
      'heal-current-settings':
        'a heal uses the rate, the hold period and the affiliate status of that moment',
      'waiting-payments-all':
        'an event that names the user of waiting payments has all of them evaluated, however many they are',
      'waiting-payments-failing':
        'a waiting payment whose evaluation fails stops no other, and is evaluated again',
      'heal-two-devices': 'a heal is correct when two devices identify the user at the same time',
      'heal-after-crash': 'a heal is completed when the process is killed in between',
      'heal-workflow': 'a heal is a workflow that the Temporal UI shows, paged for users with many events',
      'heal-any-source': 'a heal follows from any source of the binding',
      'heal-identity-causes': 'a heal applies only to causes of identity',
      'heal-reach': 'a heal reaches payments after the touch and at most a window old',
      'heal-reach-to-the-millisecond': 'a heal respects window and touch to the millisecond, as stored',
      'concurrent-facts': 'two concurrent facts do not miss each other',
      'concurrent-evaluations': 'two evaluations based on the same read append once',
      'evaluation-idempotent': 'a repeated evaluation appends nothing',
      cors: 'any origin is allowed, without credentials',
      'redirect-parameters': 'the redirect counts a click and adds `claim_token` and `via`',
      'redirect-on-host': "the redirect works on the subdomain's host",
      'host-to-subdomain': 'a host name determines the link subdomain',
      'play-store-referrer': 'the parameters are inside `referrer=` for the Play Store',
      'redirect-inactive-link': 'an inactive link redirects without a token',
      'platform-destinations':
        'a link can have destinations for iOS and Android, which the redirect chooses by the User-Agent',
      'platform-of-user-agent':
        'the User-Agent names the platform; an iPad in desktop mode, a bot and an unknown one have none',
      'host-header':
        'the `Host` header chooses the app of a link or an association file, and no other header does',
      'link-associations':
        'link hosts name the mobile apps that open links with `via`: of one app on its subdomain, of all apps elsewhere',
      'shared-host-apps':
        'the operator decides whether shared link hosts name the mobile apps of all founders, those of iOS only, or none',
      'direct-link':
        'a link that opened the app directly is attributed by its `via`; one that did not redirects and counts',
    },
  },
];

/** Decisions about what the interface specification leaves open: money. */
const MONEY: readonly PromiseSection[] = [
  {
    title: '5. Webhooks',
    promises: {
      'provider-sources': 'the page of each provider states what is documented, inferred and unverified',
      'provider-names': 'each supported provider has a name in lower case, and no other name is known',
      'payment-components':
        'a payment has the tax and the store fee that its event states or estimates; what cannot be read is unknown',
      'webhook-404-413': '404 for an unknown provider, 413 for a body over 1 MiB',
      'webhook-uniform-401':
        'an unknown app, a missing secret and a failed check return the same 401; an unknown app leaves no row',
      'refused-delivery-recorded': 'a refused delivery is recorded without its body, with its SHA-256',
      'flood-in-one-row': 'a flood of refused deliveries is counted in one row',
      'verified-by-accepting-secret':
        'a delivery is verified against the secret that accepted it, however late',
      'verified-by-body-hash': 'a delivery is verified against the SHA-256 of its body',
      'revenuecat-signature':
        'with a signing secret, a webhook of RevenueCat needs its token and a signature of its time and body, now and when it is verified again',
      'token-keyed-hash': 'of a static token only a keyed hash is stored',
      'token-hash-keyed': 'the hash of a token is keyed',
      'retried-step-no-duplicate': 'a retried step is not a duplicate of itself',
      'killed-process-no-duplicate': 'a killed process creates no duplicate',
      'dedup-per-app': 'events are deduplicated inside one app',
      'dedup-by-event-id': 'events are deduplicated by provider and its event id',
      'store-purchase-once': 'one store purchase reported by two providers earns once',
      'payment-by-store-reference': 'a payment is identified by store and reference',
      'placeholder-transactions':
        'an event whose transaction is a placeholder such as null or 0 is a failed delivery, and ties no purchases together',
      'refund-own-id': 'a refund is identified by its own id',
      'stripe-reference': 'the reference of Stripe is the invoice, else the payment intent',
      'payment-aliases': 'a payment with two references earns once',
      'refund-any-reference': 'a refund reverses its payment, whichever of its references it names',
      'earned-twice-is-corrected': 'a payment that earned under two references is corrected, exactly once',
      'money-model':
        'any sequence of facts in any order has the books of a model that shares no code with the service',
      'alias-keeps-user': 'a second event of a payment still identifies the user',
      'dispute-one-state': 'a dispute has one state per id, and its terminal state wins',
      'dispute-latest-terminal': 'of the terminal events of a dispute the latest one decides',
      'dispute-ends-by-status':
        'a dispute of Stripe ends by its status, whatever the event is called: only won and prevented give back',
      'stripe-refund-totals':
        'on Stripe endpoints without events per refund the running total of a charge counts once',
      'refund-converted':
        'a refund or dispute in another currency without a USD value is converted at the reference rate, or listed until there is one',
      'stripe-version-raised':
        'a refund that a running total contains counts once, also when the API version of the endpoint is raised',
      'stripe-credit-notes':
        'what a Stripe credit note returns outside Stripe takes back its share until it is voided',
      'stripe-out-of-band': 'money that an invoice received outside Stripe does not earn',
      'stripe-invoice-product':
        'the product of an invoice is that of the plan, not of an item or a proration, in whichever order its lines are',
      'stripe-subscription-names-user':
        'a user named later on a Stripe subscription heals its earlier invoices',
      'keys-beside-users':
        "a provider's key leads to a user only where no event of the payment names one, and the key of a customer last",
      'placeholders-are-anonymous':
        'a placeholder such as undefined, null, guest or zeros is never a user id, in any spelling',
      'placeholder-identify-400':
        'an identify with a placeholder is a 400 placeholder_user_id and stores nothing',
      'ids-per-event': 'an event that names more than 200 users and keys is a failed delivery',
      'content-faults-end':
        'a delivery whose own content the database refuses ends as failed and is not retried',
      'one-invoice-one-earning':
        'an invoice that was paid in parts earns once, on what was paid in all, in any order of arrival',
      'stripe-connected-accounts':
        'events of connected Stripe accounts do not earn unless the app lists the account',
      'stripe-listed-accounts': 'events of a connected Stripe account that the app lists earn like its own',
      'stripe-delisted-refunds':
        'refunds and disputes of a stored payment count after its account was taken off the list',
      'stripe-accounts-reprocessed':
        'a change of the listed Stripe accounts applies to earlier deliveries when they are reprocessed',
      'stripe-payment-intents':
        'a Stripe payment intent that names its user earns once, beside its session or invoice',
      'stripe-api-versions': 'every generation of the API of Stripe is booked to the cent',
      'webhook-200': '200 `{ eventId, commissionId }`, 200 `{ duplicate: true }`',
      'webhook-pending': '200 with `pending` after 2.5 s, with the event id of the inbox row',
      'webhook-without-temporal':
        'a delivery is stored and its response is `pending` while Temporal is unavailable',
      'webhook-503': '503 with `Retry-After` when nothing was stored',
      'overload-pending':
        'a webhook that is answered as pending keeps its place until its delivery has ended',
      'overload-later':
        'a webhook is stored and answered as pending while as many deliveries as fit are in progress, and started in turn',
      'overload-503': '503 with `Retry-After` beyond what can be finished in time',
      'overload-reads':
        'a flood of webhooks and clicks leaves connections for reads, exports and health checks',
      'accepted-never-lost': 'an accepted delivery is never lost',
      'unreadable-body-failed': 'an unreadable body is stored as failed, 200',
      'unknown-type-ignored': 'an unknown type is stored as ignored, 200',
      'revenuecat-events': 'events of RevenueCat are normalized',
      'revenuecat-stripe-reference':
        'a purchase in the store STRIPE is identified by its transaction id and renewal number',
      'adapty-events': 'events of Adapty are normalized',
      'superwall-events': 'events of Superwall are normalized',
      'superwall-v2':
        'the facts of the legacy format in a body of the format V2 of Superwall are read, once beside the legacy format, and any other form is kept as failed',
      'superwall-price-decides': 'the sign of the price decides what an event of Superwall is, not its name',
      'stripe-events': 'events of Stripe are normalized',
      'paddle-events': 'events of Paddle are normalized',
      'local-price-converted':
        'a price that is known only in its own currency is converted at the reference rate',
      'refund-in-usd': 'a refund in USD of a converted payment takes back its share of the base',
      'payment-ceiling': 'a payment above `MAX_PAYMENT_USD` is `price_unknown`',
      'paddle-invoice-amount':
        'an invoice of Paddle is worth what was paid for it, without what was credited',
      'paddle-chargeback-warning': 'a chargeback warning of Paddle takes money back, at most the payment',
      'gross-base': 'the base of a commission is the gross price in USD',
      'proceeds-not-base': 'the base of a commission is never the proceeds',
      'reference-rate':
        'other currencies are converted at the reference rate of the day, stored on the event',
      'currency-decimals-per-provider':
        'an amount in minor units is read with the decimals that its provider gives the currency',
      'rates-imported': "rates are imported from the bank's CSV or the operator's",
      'rates-fetched': 'rates are fetched daily',
      'rate-frozen': 'a conversion is frozen at the evaluation',
      'rate-of-seven-days': 'the latest rate of the seven days before applies',
      'missing-rate-waits':
        'a payment without a rate waits as `missing_exchange_rate` and continues automatically',
      'reversal-row':
        "a reversal is negative, with the original's rate and `dueAt`, at the time of the refund, whatever the affiliate's status",
      'revenuecat-refund-time': 'a refund of RevenueCat has the time of the event',
      'reversal-cumulative':
        'reversals are cumulative: the share of the refunded amount, never more than the commission',
      'reversal-in-original-currency': 'reversals are calculated in minor units of the original currency',
      'refunds-and-disputes': 'refunds and disputes are added together',
      'reversal-constraint': 'a database constraint limits reversals',
      'refund-undone': 'a refund that is undone appends the opposite row',
      'refund-waits': 'a refund waits for its payment',
      'sandbox-never-earns': 'sandbox, test and simulated events are stored and never earn',
      'sandbox-shown': 'sandbox events are shown',
      'transfer-binds-receiver': 'a transfer binds the receiver when exactly one giver has an attribution',
      'transfer-before-giver': 'a transfer that arrives before its giver is known applies afterwards',
      'transfer-keeps-existing':
        'a transfer changes no existing attribution of the receiver, and no existing commission',
      'relay-after-30-s': 'the relay starts a delivery that has had no outcome for 30 s',
      'relay-after-outage': 'the relay starts overdue deliveries after any failure of Temporal',
      'recovers-from-new-server':
        'open work is started again at once when the Temporal server has lost its data',
      'recover-command': '`tributary recover` starts all open work at once, and nothing twice',
      'payouts-stop-after-restore':
        'a database that was restored or copied makes no payout until the operator resumes payouts',
      'payouts-stopped-signal': 'stopped payouts show in `/readyz` and raise an alert',
      'payout-recorded': 'a payout that the database has forgotten is recorded from its CSV, once',
      'migrations-frozen': 'a migration of a release is never changed',
      'payout-signalled-again': 'a payout request that the Temporal server has lost is passed on again',
      'relay-paced-by-capacity':
        'the relay has a few deliveries in flight and starts the next when one has ended',
      'bounded-shutdown': 'a shutdown takes a limited time; the relay and the sweep do what is left over',
      'sweep-schedule': 'the Schedule of the sweep is ensured',
    },
  },
  {
    title: '6. Commissions and payouts',
    promises: {
      'commission-row': 'a commission row has its documented fields',
      'due-at': 'a commission is `pending` first; `dueAt` is `occurredAt` plus the hold period',
      'due-to-the-millisecond':
        'a commission is due at `dueAt`, not a millisecond before: for preview, export, sweep and timer',
      'timer-matures': 'the timer matures a commission at `dueAt`',
      'sweep-replaces-timer': 'the sweep replaces a lost timer',
      'near-holds-by-sweep':
        'the sweep alone matures a commission that is due within two minutes of its creation',
      'due-at-once-swept': 'a commission that is due when it is written matures within seconds',
      'hold-timers-sweep': 'with `HOLD_TIMERS=sweep` the sweep alone matures commissions',
      'sweep-whole-backlog': 'a sweep matures all overdue commissions, page by page',
      'export-matures': 'an export matures due commissions',
      'zero-writes-no-row': 'a zero amount and a rate of 0 write no row',
      'inactive-at-evaluation':
        'an affiliate that is paused or removed at the evaluation earns nothing, and the cause is stored',
      'inactive-rows-payable': 'existing commissions of an inactive affiliate stay payable',
      'matures-without-payout': 'due commissions mature even when the net pays nothing',
      'preview-equals-export': 'preview and export take the same rows',
      'net-zero-pays-nothing': 'payouts are net per affiliate; zero or less pays and marks nothing',
      'negative-net-carried': 'a negative net is carried forward and shown',
      'manual-signal-pays-nothing': 'a signal sent by hand pays nothing',
      'settle-open-request': 'one transaction settles, and only while its payout request is open',
      'export-closes-on-timeout': 'an export call that gives up closes its request first',
      'export-paid-or-not': 'an export call gets the payout, or nothing is paid',
      'export-killed-process': 'an export is correct when the process is killed',
      'export-recovers-from-overload':
        'an export does not wait behind the exports of its creator that were given up',
      'export-key-freed':
        'an export that timed out frees its key at any moment, and another export with it works',
      'export-idempotent': 'the same `Idempotency-Key` returns the same bytes',
      'export-key-forever': 'the `Idempotency-Key` of an export never expires',
      'expected-total': 'another total than expected is a 409 `total_changed`',
      'payout-bounded':
        'a payout takes all due reversals and corrections and the oldest 50,000 due earnings; repeating the export pays the rest',
      'nothing-due': 'an export with nothing due returns the header line and creates no payout',
      'export-headers': 'an export has `Content-Disposition`, `X-Payout-Id`, `X-Payout-Sha256`',
      'csv-formulas':
        'a name that is a formula, also in a part of its cell or in full-width characters, is shown as text',
      'payout-chain':
        'a hash chain over the payouts of an app proves which CSV was paid, and that none was changed, removed or inserted',
      'csv-format': 'the CSV is RFC 4180, CRLF, UTF-8, two decimals, `USD`, epoch ms, no formulas',
      'sums-beyond-2-53': 'sums beyond 2^53 cents make no dashboard and no export fail',
      'payout-csv-again': 'the id of the payout returns the same bytes again',
      'payout-fields': 'a payout has its documented fields',
      'transfers-append-only': 'statements about the money of a payout are only appended',
      'lists-as-csv': '`Accept: text/csv` gets the rows of a list as CSV',
      'preview-as-of': '`asOf` is ISO 8601 in UTC',
      'preview-positive-only': 'the preview has rows only where the net is positive',
    },
  },
  {
    title: 'Beyond the specification: commission policies',
    promises: {
      'creator-computed-from':
        'a creator sees what a policy computed a commission from, and no user, event or rule',
      'policy-by-months':
        'a rule by months counts calendar months from the first payment of a customer, and a charge up to two days early counts after the border',
      'policy-of-its-day': 'a payment earns by what is in effect at its own time, whenever it is reported',
      'policy-of-the-narrowest-scope':
        "the policy of a creator goes before the creator's own rate, which goes before the policies of the group and the app",
      'first-payment-once': 'of any number of payments of a customer at once, exactly one is the first',
      'policy-numbers':
        'attributed payments of a customer are numbered in the order of their attribution, also those that earn nothing, those from before the first policy, and those after a transfer',
      'policy-dated-ahead':
        'a payment that the provider dates ahead earns by the policies, the group and the codes of when its webhook arrived',
      'policy-base':
        'a base without tax or store fee takes what is stated before what is estimated, and that before what the policy assumes',
      'policy-flat':
        'a fixed amount is at most the base, unless its rule says otherwise, which needs the permission `payout`',
      'policy-input': '400 for rules that cannot be meant, and for an instant that is not two minutes ahead',
      'policy-append-only': 'versions, assignments and memberships are never changed',
      'policy-absent': 'without policies, commissions and their CSV have the fields and columns of before',
      'policy-explained': 'the explanation of an event says by which rule it earned, and from which inputs',
      'policy-creator': 'the creator reads the own terms, and what changes later, in sentences',
      'policy-database': 'the database refuses an earning or a number that does not follow from a policy',
      'policy-conversion':
        'the row of a whole invoice has the rule and the number of the part that earned before it',
    },
  },
  {
    title: 'Beyond the specification: purchase codes',
    promises: {
      'code-binds':
        'a purchase with a code earns for its creator, and so do later purchases of the user; earlier ones do not',
      'code-heals': 'a later purchase that was reported before the one with the code earns, too',
      'code-when-unattributed': 'a code changes nothing for a user who belongs to somebody',
      'code-off': 'codes attribute nothing unless the setting of the app is on',
      'code-from-registration': 'a code counts from its registration until it is deactivated',
      'code-one-binding': 'of purchases with codes of several creators at once, all earn for one creator',
      'code-stripe':
        'a promotion code of Stripe earns with its invoice and its renewals, in any order of the events',
      'code-taken': 'a code belongs to one creator at a time, whatever its case',
      'code-input': '400 for what cannot be a code, and for a code of Stripe or Paddle without its id',
      'code-binds-key':
        'the code of a purchase without a user binds its subscription, never its customer: renewals earn',
      'code-key-first': 'a bound subscription goes before a user with another creator',
      'code-restored':
        'a subscription that a code bound goes on to earn after it was restored under another anonymous id, as of one paying customer',
      'code-sign-in':
        'a user whom an event names with a bound subscription belongs to its creator, and their payments are numbered together',
      'code-key-by-hand':
        'a founder gives away a user whose subscription a code bound, and its renewals, too',
      'code-waits-for-user':
        'a code of a sale without a user waits a minute for an event that names the user before it binds a key',
      'creator-codes': 'a creator sees the own codes that work, in an app whose codes count',
      'code-anonymous-keys': 'a code binds no placeholder of an anonymous id',
      'code-key-database': 'a bound key is never made a user',
      'explained-codes': 'the explanation of a payment says why a code did not count',
      'code-database': 'the database refuses a code that is changed, and an attribution by a code without it',
      'code-free-period':
        'a code that began a trial or a free period counts for the payments that follow, if it was in force when the customer used it',
      'code-free-leak':
        'a code that began a free period takes no user of the subscription from another creator, whomever its payments name',
      'code-one-customer':
        'a code binds a person with the user and all keys, who is one customer under whatever name',
      'code-key-of-others': 'a code binds no key of somebody who has a creator',
      'code-subscription-first': 'of several bound keys of a payment, the subscription decides',
      'code-person-by-hand': 'what a code bound is given away as one person, by any of its keys',
      'code-providers': 'the events of each provider state codes in the documented fields',
    },
  },
  {
    title: 'Beyond the specification: payout blocks',
    promises: {
      'payout-block':
        'a creator whose payouts are blocked goes on to earn, and is paid all of it once the block is lifted',
      'payout-block-in-turn': '409 for a block of what is blocked, and for the end of what is not',
      'payout-block-race': 'no export pays after the response that the payouts are blocked',
      'payout-block-database':
        'the database refuses a payout of a creator whose payouts are blocked, and a block that is changed or out of turn',
    },
  },
  {
    title: 'Beyond the specification: payout schedules',
    promises: {
      'schedule-drafts':
        'a payout schedule drafts a run each month, with its terms, and the run and its audit row say so; it pays nothing',
      'schedule-once':
        'the schedule is done with each month of an app once, whatever drafts at the same time',
      'schedule-missed':
        'the last month that was missed is made up once, and no earlier one, also when the clock jumps',
      'schedule-empty': 'where nobody would be paid, the schedule drafts nothing, and is done with the month',
      'schedule-waits': 'the schedule waits for a run that is paid, and for the draft of a person',
      'schedule-approver':
        'with `payoutApproval: another_key`, the key that has set the schedule cannot approve its draft',
      'schedule-permission': 'a change of the payout schedule needs the permission `payout`',
      'schedule-alert': 'the alert about a draft of the schedule opens at once',
    },
  },
  {
    title: 'Beyond the specification: mails to the people who run an app',
    promises: {
      'notify-alerts': 'each address gets one mail when an alert opens and one when it closes',
      'notify-bounded':
        'of a rule and subject, three openings within a day are mailed at most; the third mail says that it is the last',
      'notify-permission':
        'a change of the addresses needs the permission `setup`, and no audit row has them',
      'notify-draft': 'each address gets one mail about a draft of the payout schedule',
      'weekly-report': 'each address gets one report for each week, with the week before that',
      'weekly-report-off':
        'nobody gets a report while it is turned off, or about a week before it was turned on',
    },
  },
  {
    title: 'Beyond the specification: payout runs',
    promises: {
      'run-as-of':
        'a payout run pays what was due when it was drafted; what is earned or becomes due later waits',
      'run-changed':
        'a run does not pay a creator who has a refund, a deduction, a block or an export after the draft, and says so',
      'run-refused': '409 for an approval with another total, or of a run that has ended or pays nobody',
      'run-one-open':
        'an app has one run that is being paid at a time, and a cancelled one pays nobody further',
      'run-payees':
        'a run pays to the payee that counts, and nobody whose payee is new or was changed after the draft; its files have what was paid',
      'run-database':
        'the database refuses a payout of a run with another amount, and a run that changes after its approval',
      'run-results-two-transfers':
        'a report states no return of a payout while one of its transfers arrived, or may still arrive',
      'run-results-conflict':
        'a report that contradicts a stored return is listed, and keeps the money from being sent again until somebody decides',
      'run-results-cost':
        'the run of a report is looked up before it is read, a report with too many cells is refused before, and others have their turns meanwhile',
      'run-results-once': 'a report states the same once, however often it is imported',
      'run-resend':
        'a resend run sends the money again that came back, in new files with new keys, and changes no ledger',
      'run-resend-once': 'each return is sent again once, in whatever order reports and runs come',
      'run-resend-approved':
        'a resend run that an earlier version approves is sent, and a cancelled one sends nothing',
      'run-resend-cancelled': 'a cancellation while the items are decided is answered as not stopped',
      'run-resend-race':
        'a block or another payee that is answered before an item is decided counts for it, and one that arrives meanwhile waits',
      'run-resend-database':
        'the database refuses to send again what did not come back, what was sent again, another amount, or to a blocked creator, and to stop what is decided',
      'run-model':
        'random runs, exports, reports and kills leave what a model says: each cent in one payout, and no money sent twice',
      'run-another-approver':
        'with `payoutApproval: another_key`, the key that drafted a run, set a payee in it or changed the address of its creator cannot approve it, also in the database',
      'run-no-single-export':
        'with `payoutApproval: another_key`, a single export pays nothing, also in the database',
      'run-killed': 'a run whose process is killed pays each of its creators once',
    },
  },
  {
    title: 'Beyond the specification: mails',
    promises: {
      'email-invitation': 'an invitation goes to the address of the creator, and its link signs in',
      'email-payee-changed':
        'each of five versions of a payee within an hour is mailed to its creator at once, also one that the creator has set',
      'email-payee-former':
        'the mail about a payee goes to the address of the moment, and to those that were replaced within seven days before',
      'email-payee-many':
        'of more than five versions of a payee within an hour, the last one is mailed within an hour',
      'email-code-payee': 'the mail with a code shows the payee that it approves to the last character',
      'email-shares': 'the mails of one account, however many, leave places to those of the others',
      'email-payout-sent':
        'a payout that is stated as sent is mailed once to its creator, and again after it came back',
      'email-private':
        'no log, history, audit row or row of a mail has the address or the token of a mail that was sent',
      'email-address-now':
        'the address of a mail that is about no payee is read when it is sent, and without one nothing is sent',
      'email-retried': 'a mail server that is away delays a mail',
      'email-final': 'a 5xx about the recipient ends a mail, a 4xx is tried again, ten times in all',
      'email-once': 'a mail that was sent is not sent again',
      'email-killed': 'a sender that is killed repeats the same mail: one row and one `Message-ID`',
      'email-message-id': 'the `Message-ID` is the id of the mail',
      'email-skipped': 'without a mail server a mail is skipped',
      'email-codes-first': 'a code does not wait behind other mails, however many there are',
      'email-address-changed':
        'the former address of a creator gets a mail when another one takes its place; it does not name the new one',
    },
  },
  {
    title: 'Beyond the specification: payees',
    promises: {
      'own-payee':
        'a creator sets the own payee with a mailed code; it waits like every version, and the audit names the creator',
      'payee-code-attempts': 'a code has five attempts, also where many are made at the same time',
      'payee-code-bound': 'a code approves the payee that it was made for, and nothing else',
      'payee-code-time': 'a code is valid for 15 minutes',
      'payee-code-last-word': 'a payee that the founder sets, and a block, end a code from before',
      'payee-set-by-whom': 'the database takes no payee without the key that set it or a confirmed code',
      'payee-address-new': 'an address gets codes seven days after it was set',
      'payee-address-confirmed':
        'a changed address gets codes only if a caller who may pay has changed or saved it',
      'payee-no-write':
        'with the permissions `write` and `setup` alone, no sequence of calls changes where money goes',
      'payee-codes-need-mail': 'without a mail server only the founder sets payees',
      'payee-waits':
        'only the latest payee whose wait has ended is paid to, and nobody while a change or a first payee waits',
      'payees-at': 'one statement reads what the rule needs to know of many creators',
      'payee-same': 'a payee that is set again is the same version',
      'payee-expected-version':
        '409 for a change of a payee that is not the version that the caller has read',
      'payee-permission': 'nobody without the permission payout sets or erases a payee',
      'payee-input':
        '400 for a recipient that a file of payouts cannot carry: formulas, line breaks, control characters',
      'payee-masked': 'who may only read sees at most the first character before the @, or of a name',
      'payee-encrypted':
        'a recipient is stored encrypted, and can be read as that version of that creator only',
      'payee-nowhere-else': 'a recipient is in no log, audit row, problem, stored response or history',
      'payee-database':
        'the database refuses a version of a payee that is changed, out of turn, or waits less than the app says',
      'payee-wait-setting': 'the wait is a setting from 1 to 30 days, for payees that are set from then on',
      'payee-wait-permission': 'nobody without the permission payout changes the wait',
      'payees-key-changes': 'a running service encrypts payees with the first key of SECRETS_KEY',
      'payees-lost-key': 'a payee whose key is lost can be set again',
      'creator-payee': 'the creator sees the method, a masked recipient and from when it counts',
    },
  },
  {
    title: 'Beyond the specification: manual attribution',
    promises: {
      'attributable-key':
        'a payment without a user states its subscription or anonymous customer, which a person can attribute',
      'manual-from-now':
        'a user who is given to a creator earns from then on, and earlier payments never do, however late they are reported',
      'manual-from':
        'earlier payments earn from an instant on, exactly as previewed or not at all, with the permission `payout`',
      'manual-reassign':
        'a user who belongs to somebody is given away for later payments only; refunds of earlier ones are taken back from whoever earned',
      'manual-nobody': 'later payments of a user can belong to nobody',
      'manual-input':
        '400 for a placeholder, a missing reason, or an instant that is not within the last 365 days; 409 for an erased user',
      'manual-database':
        'a manual attribution is never changed, and a payment keeps the attribution that it earned through',
      'manual-counts': 'a manual attribution adds no install and no identified user',
      'manual-erasure': 'an erasure removes the reason',
    },
  },
  {
    title: 'Beyond the specification: bonuses and deductions',
    promises: {
      'entry-one-commission':
        'an entry has exactly one commission, without a payment, which counts in all sums',
      'entry-absent': 'without entries, commissions and their CSV have the fields and columns of before',
      'entry-nets': 'an entry nets with what is due and is in the CSV of its payout without an event',
      'entry-due': 'an entry is due at once, or at its own time',
      'entry-once': 'a repeated call adds nothing, whatever answer was lost',
      'entry-undo-once': 'an entry is undone once, by its opposite, and an undo is not undone',
      'entry-payout-permission': 'adding and undoing need the permission `payout`',
      'entry-input': '400 for an entry without an amount, category or reason, or beyond the limits',
      'entry-database': 'the database refuses an entry without its commission, or one that is changed',
      'entry-creator': 'the creator reads what an entry is for and why',
    },
  },
];

/** Decisions about what the interface specification leaves open: reading, diagnostics, operation. */
const OPERATION: readonly PromiseSection[] = [
  {
    title: '7. Lists, overviews, timeseries',
    promises: {
      'list-query-400': '400 for a `limit` outside 1 to 100 and for an unknown filter value',
      'cursor-400': '400 for a cursor of another list and for a damaged one',
      'foreign-cursor-400': "400 for another account's cursor",
      'rows-exactly-once': 'the rows that exist on the first page are returned exactly once',
      'half-open-range': '`from` and `to` are half-open, on `occurredAt`',
      'external-id-once': 'a row whose external id exists creates nothing, and a bulk call reports its id',
      'external-id-conflict': '409 with the existing id for a repeated external id',
      'external-id-changed': "an affiliate's external id can be set, changed and removed, and stays unique",
      'affiliates-by-external-id': 'affiliates are filtered by external id',
      'repeated-email-warning': 'a repeated e-mail address creates the affiliate, with a warning',
      'payout-csv-extended': 'the extended CSV has e-mail address, ISO date and a total line',
      'payout-csv-address':
        'the extended CSV shows an address only if a caller who may pay has set it, or the creator was added with it seven days ago',
      'apps-paged': 'the list of apps takes `limit` and `cursor` and stays an array',
      'commissions-more-filters': 'commissions are filtered by link, payout, kind, provider and user',
      'notes-and-tags':
        'founders write a note and tags about an affiliate, which creators do not see, and filter by a tag',
      'affiliates-by-email': 'affiliates are filtered by e-mail address, ignoring case',
      'deliveries-filter': 'deliveries are filtered by processing status and provider',
      'preview-earlier': 'the preview of an earlier instant is what was owed then',
      'app-overview-parts': "the founder's overview has its documented parts and amounts",
      'due-not-net': 'what is due is not net of negative balances, which are shown apart',
      'app-overview-rows': "the founder's overview has ten affiliates, ten links, twenty commissions",
      'funnel-paid-users': '`paid` of the funnel counts users; revenue is net of refunds',
      'revenue-production-only': 'revenue is production only',
      'lifetime-sum': '`lifetime` is the sum of the other three',
      'affiliate-overview-parts': "the affiliate's overview has its documented parts",
      'next-due-at': '`nextDueAt` is when the next part of what is held becomes due, whatever is due now',
      'next-payout-at': '`nextPayoutAt` is the earliest unpaid `dueAt`',
      'timeseries-zero-filled': 'a timeseries is zero-filled and echoes its query',
      'timeseries-intervals': 'a timeseries is by hour, day, week or month',
      'timeseries-zones': 'a timeseries is in any time zone',
      'timeseries-scope': 'a timeseries is of an app, an affiliate or a link',
      'timeseries-1000-points': 'a timeseries has at most 1,000 points',
      'bulk-rows': 'a bulk call takes `{ rows }` with 1 to 100 rows',
      'bulk-names-row': 'a schema violation rejects the whole call and names the row',
      'bulk-state-rejects-one':
        'a conflict with the state rejects one row: taken, unknown affiliate, twice in the batch',
      'new-affiliate': 'a new affiliate has its documented fields; `active`, `paused`, `removed`',
      'unknown-field-400': '400 for unknown fields',
      'destination-form': 'a destination is https, http or a custom scheme',
      'destination-safe':
        'a destination has no user name, and no scheme that a browser or an operating system runs',
      'destination-schemes': 'an app that declares its custom schemes accepts no link to another one',
      'slug-in-patch-400': '400 for `slug` in a patch',
    },
  },
  {
    title: '8. Diagnostics',
    promises: {
      'identity-samples': 'samples have at most twenty ids per side',
      'identity-no-data': '`no_data` when either side is empty',
      'unattributed-row': 'an unattributed row has its documented fields',
      'cause-sentence': 'each likely cause has its own sentence',
      'cause-true-and-cured': 'each likely cause arises as it states, and the stated fix cures it',
      'cause-identity-rules':
        '`missing_user_id`, `anonymous_user_id`, `user_never_identified`, `user_not_attributed`, `missing_exchange_rate` follow their rules',
      'cause-inactive-affiliate': '`affiliate_paused`, `affiliate_removed` follow their rules',
      'cause-outside-window': '`outside_attribution_window` follows its rule',
      'longer-window':
        'a longer window extends the reach of a late identify, never to a time before the click',
      'cause-rate-zero': '`rate_zero` follows its rule',
      'cause-user-id-mismatch': '`user_id_mismatch` distinguishes these spellings',
      'unattributed-by-user': 'unattributed events are filtered by user id',
      'unattributed-without-sandbox': 'sandbox events are not listed as unattributed',
      'delivery-fields': 'a delivery has its documented fields',
      'delivery-workflow': 'the workflow id of a delivery is that in Temporal',
      'diagnostics-paged': 'diagnostics are paged like the lists',
      'explanation-steps': 'an explanation has every step in order',
      'explanation-without-commission': 'an explanation says why there is no commission',
      'explanation-cause': 'an explanation of an event that earned nothing has the deciding fact',
      'ledger-check-rules': 'the ledger check returns each rule',
      'ledger-check-finds': 'the ledger check finds what violates a rule',
      'self-test-no-money': 'the self-test leaves no money, whatever its body and the secret are',
      'self-test-marked':
        'deliveries of the self-test are marked, and count neither as last delivery, user nor attack',
      'self-test-code':
        'the self-test sends a code of a creator, and says whether it was read and whose it is',
      'self-test-proxy':
        'the self-test finds a proxy that changes requests or responses, and sends no secret where the URL does not lead to this service',
      'self-test-wrong-secret':
        'the self-test reports a secret of the wrong form and one that cannot be decrypted',
      'self-test-pending': 'a pending response names what the operator has to check',
      'self-test-limits': 'the self-test ends in time, and few run concurrently',
      'self-test-command':
        'the self-test of the command line does the same, with exit status 1 when something needs a fix',
    },
  },
  {
    title: '9. Errors, limits, versions',
    promises: {
      'body-values': '400 for a body of more than 5,000 values or 32 levels, before it is parsed',
      'problem-document': 'errors are problem documents with a stable code',
      'errors-of-400': 'a 400 has `errors`',
      'no-internals-in-errors': 'an error never contains a stack, a query or a secret',
      'allow-405': '405 with `Allow`',
      'body-413-415': '413 for a body that is too large, 415 for an unsupported one',
      'linear-query': 'the parameters of a query are read in time proportional to their length',
      'open-body-limit': 'bodies have at most 32 KiB where no account key is needed',
      'content-encoding-415': '415 for a body with a `Content-Encoding`',
      'large-bodies-bounded':
        'the large bodies that are being received and verified take a bounded amount of memory',
      'large-body-off-loop': 'the signature of a large body is computed in a thread of its own',
      'slow-request-408': 'a request that does not arrive in time is cut off',
      'connection-limits':
        'connections are limited, for the process and for each address, and those with half a request lock nobody out',
      'router-connections': 'the router in front of cells limits the connections of an address',
      'one-request-per-connection':
        'the requests of a connection are worked on one after another, and its first 429 ends it',
      'packets-joined':
        'a request takes about a hundred reads at most, however slowly and in however many packets it arrives',
      'payout-csv-turns': 'a payout CSV is read in parts, with turns of the event loop between them',
      'creator-files-limited':
        'a creator has one statement or CSV at a time, until it is read, and takes no place of another creator',
      'account-files-limited':
        'an account has two CSVs at a time, of payouts or lists, and takes no place of another account; a list ends after about 8 MiB',
      'link-guesses-limited':
        'links that do not exist are limited per address, and visitors who share the address are still redirected',
      'health-in-crowd':
        'a health check waits for a few requests of each other connection, whatever was sent at once',
      'founder-crowd':
        'however many slow reads and exports one account sends, webhooks, clicks and health checks find a connection',
      'creator-crowd':
        'however many slow calls a creator sends, webhooks, founders and health checks find a connection',
      'body-parts':
        'a body in thousands of tiny parts is refused, and a body is verified as the bytes that were sent',
      'app-before-body': 'a webhook of an unknown app is refused before its body is read',
      'signature-list-bounded': 'a signature header has at most 1 KiB and ten signatures',
      'limit-429': '429 with `Retry-After` and the `RateLimit` fields',
      'unavailable-503': '503 with `Retry-After`',
      'request-id': 'every response has `X-Request-Id`',
      'limit-defaults': 'the limits are 600, 60 and 120 a minute',
      'address-limit':
        'an address makes at most 1,200 calls a minute without an account key; an IPv6 /64 counts as one address',
      'failures-limit':
        'calls without a valid key or session are limited per address, before a look-up; a key that was accepted is not locked out',
      'identify-address-limit': 'an address binds at most 60 user ids of an app a minute',
      'limit-scopes': 'limits are per key; per device; per app and `ipHash`, else address',
      'webhooks-unlimited': 'valid webhooks are not limited',
      'refusals-limit':
        'an address that was refused 600 times in a minute by an app is not checked there for a while, unless it has delivered a valid webhook',
      'refusals-in-memory': 'refused webhooks are counted in memory and written once a second',
      'trusted-proxies': "the address is the socket's, unless proxies are trusted",
      'idempotency-key': 'every POST under `/apps` supports `Idempotency-Key`',
      'idempotency-per-account': 'an `Idempotency-Key` is unique per account',
      'idempotency-24-h': 'the same key and body return the stored response for 24 h',
      'idempotency-conflict': 'another body with the same key is a 409',
      'idempotency-refusals': 'a 400, 401, 403 or 429 does not use the key',
      'openapi-typescript-client':
        'a TypeScript client generated from the document has named types and compiles in strict mode',
      'openapi-named-schemas': 'the document names its schemas and describes each response',
      'openapi-described-fields':
        'each field of the document has a description, with its unit and what null means',
      'openapi-from-schemas': '`GET /openapi.json` is generated from the schemas that validate',
      'docs-page': '`GET /docs` needs no other address',
      'health-and-readiness': '`GET /healthz` and `GET /readyz` report the state of the service',
      'metrics-port': '`GET /metrics` has its own port',
      'metrics-host': 'the metrics listen on the loopback address by default',
      'readyz-no-details': '`GET /readyz` shows causes only on the port of the metrics',
      retention: 'data without use is removed after a configurable time, and the metrics report it',
      'specified-paths': 'paths are as specified',
    },
  },
  {
    title: '10. Operating interface',
    promises: {
      'restricted-role':
        'migrations run with `MIGRATIONS_DATABASE_URL`, and everything else needs no rights on the schema',
      'embedded-restricted-role':
        'the role of the service in the built-in Postgres can read and write rows and nothing else',
      'database-verified':
        'a database on another host is verified, whatever `sslmode` says, except for `disable` and `no-verify`',
      'database-tls':
        'a database over TLS is used when its certificate is valid, and otherwise refused with what to do',
      'outside-calls-end':
        'a call to a server that is not of this service ends with its time limit, whatever the server answers, and closes its connection',
      'install-scripts':
        'no package runs a script when it is installed, except that which unpacks the built-in Postgres, and none reports the installation',
      'containers-confined':
        'the containers of Compose have only the capabilities that they need and logs of limited size, and the UI of Temporal is in no network of the balancer',
      'pods-egress':
        'in Kubernetes, the pods reach no private address except those of Postgres, Temporal and name servers',
      'metrics-in-time':
        'the metrics arrive within two seconds, with what is known, while the database does not respond',
      'log-repeats':
        'a warning about the same failure is written once a minute, with the number of times that it came again',
      'temporal-checksum': 'the downloaded Temporal program has the pinned SHA-256',
      'temporal-version': 'a Temporal program on PATH is used only when its version fits',
      'child-environment': 'the built-in servers do not receive the environment of the service',
      'private-data-files': 'only the owner can read the files of the data folder',
      'variable-defaults': 'the variables have their documented defaults',
      'variable-refused': 'a wrong value is rejected with a sentence',
      'secrets-key-required': 'an external database requires `SECRETS_KEY`',
      'secrets-key-embedded': 'the embedded mode generates a secrets key and stores it',
      'separate-task-queues': 'awaited work and background work have separate task queues',
      'holds-go-last':
        'hold timers that are due go behind all other work of the background, however many there are',
      'fair-between-apps':
        'the tasks of a full queue are taken from all apps in turn, on a server with `matching.enableFairness`',
      'background-work-yields':
        'background work uses at most four database connections at once, so that webhooks and exports are answered',
      'outcome-from-the-commit':
        'a worker in another process sends an outcome with its commit; a lost one costs time only',
      'role-api-and-worker': '`ROLE` is `api` or `worker`',
      'accounts-and-keys': '`accounts create`, `keys create`, `list`',
      'keys-revoke': '`keys revoke`',
      'keys-rotate': '`keys rotate`',
      'exit-status-1': 'standard output contains the result only; an operation that fails has exit status 1',
      'exit-status-2': 'wrong arguments have exit status 2',
      'command-line-on-data-folder':
        'the command line works on the data folder, whether or not the service is running; an empty database is set up',
      'command-line-creates-nothing':
        'only the start, `migrate` and `accounts create` create a database; other commands refuse a missing or empty one',
      'move-database':
        '`export` and `import` move all data and the secrets key to another database, checked on both sides',
      'whole-archive': 'an archive that could not be written completely leaves no file',
      'bounded-archives':
        '`export` and `import` end when the database does not answer, and name the session that they wait for',
      'bounded-server-logs':
        'the logs of the built-in servers are cut at 10 MB, at a start and while they run',
      'data-survive-restart': 'the data survive a restart',
      'start-without-temporal':
        'a service that starts without Temporal serves, stores webhooks and is ready as degraded',
      'temporal-degraded': 'a service that loses Temporal is ready and reports it as degraded',
      'database-not-ready': 'a service that loses its database is not ready',
      'silent-database': 'a database that accepts connections and answers nothing counts as lost within 6 s',
      'read-only-database':
        'a database that refuses writes is not ready, and the connections to it are closed so that its name is followed',
      'environment-faults': 'a fault of the database or the machine is a 503 with `Retry-After`, never a 500',
      'bounded-migrations':
        'migrations end when the database does not answer or the process is stopped, and name the session that they wait for',
      starvation:
        'a slow database or a process without processor time keeps its connections, and gets no logins on top',
      'slow-database-ready':
        'a database that answers slowly leaves a process ready within the time that a balancer waits, with one check for all who ask',
      'durations-by-the-process':
        'a clock that is set changes no duration: limits, waits and pauses follow one that cannot be set',
      'database-clock':
        'the turn and age of open deliveries, the wait of an erasure, and what is removed, follow the clock of the database',
      'app-shares': 'an app that sends too much does not take the places of the others',
      'settings-in-force': 'settings that a pooler drops are reported at the start',
      'lost-key-reported': 'a lost encryption key of webhook secrets is reported at the start',
      'lost-key-resend': 'a webhook that may need a lost key is requested again',
      'missing-key-waits':
        'work that needs a key waits for a process that has it, and a process without all keys takes no work',
      'lost-key-ends':
        'work whose key the operator accepts as lost fails and says what to do, and a rotation ends a lost secret at once',
      'signature-time': 'a valid signature of another time names the clock',
      'empty-temporal-set-up': 'an empty Temporal server is set up',
      'two-installations': 'two installations in one namespace do not mix',
      'schedules-follow-definition': 'an existing Schedule follows its definition; a paused one is reported',
      'delivery-summary': 'the summary of a delivery workflow has its provider, app id and event id',
      'breaking-changes-noticed':
        'a change that running workflows would not survive turns a recorded history red, unless `patched()` guards it',
      'cancelled-activity-ends': 'a cancelled attempt at a delivery does no further work beside the next one',
      'cancelled-within-seconds':
        'a cancelled reprocess run, heal, conversion, sweep, rates or retention workflow ends within seconds',
      'continue-as-new': 'heals, conversions, payouts and reprocess runs of any length run',
      'starved-workflows':
        'a workflow whose process gets no processor time for seconds goes on, and does not end the process',
      'duties-independent':
        'a step of the calendar, an app or a search that fails stops no other one: drafts, weekly reports and payments that wait',
      'duties-measured':
        'the metrics say when each duty of the background work last succeeded, so that an alert tells when one has stopped',
      'stuck-work-found':
        'a heal, conversion, payout or reprocess run that fails is found with the query that finds stuck deliveries',
      'plans-at-any-size':
        'a request reads as few rows in tables that grew from nothing under its connection as in empty ones',
      'rare-retries': 'a step that has failed for an hour is retried every ten to fifteen minutes',
      'workflows-found-by-app':
        'workflows are found by their app and provider in Temporal; a namespace without these search attributes runs them all the same',
      'sdk-metrics-port':
        'the metrics of the Temporal SDK find a port of their own, also when the one that was free is taken meanwhile',
      'ui-views':
        'the server accepts each list filter and view of the runbook, and a link opens and saves each view in the UI',
      'workflow-details-in-words':
        'the current details of a workflow say in plain words what was done, what fails and why, and what the reader has to do',
      'slow-path-without-search-attribute':
        'a delivery is retried step by step on a server that lacks the search attribute, too',
      'set-up-apart-from-liveness':
        'a Temporal server that refuses a part of the set-up processes deliveries; `/readyz` is degraded and names the cause',
    },
  },
  {
    title: 'Beyond the specification: erasing users',
    promises: {
      'erasure-key-changes':
        'a service with another first key encrypts the key of erased persons again, so that the former key can go',
      'erasure-key-of-service': 'only a service creates the key of erased persons',
      'erased-everywhere':
        'after an erasure no row, body or history names the person; the ledger and the roll-ups are consistent, and payouts are still proved',
      'erased-later-facts':
        'renewals and refunds of an erased person move the money under the pseudonym, and their bodies are not stored in clear',
      'erased-not-identified': 'an erased user id that a device reports again is not stored',
      'erased-shared-device': 'a device of another user keeps its id, and that user keeps everything',
      'erased-twice':
        'an erasure that ends at any moment is completed later, and the same request returns the same erasure',
      'erased-late-keys':
        'a key that is tied to an erased person later leads to the earlier payments and bodies of that key',
      'erased-again':
        'the same request after an erasure erases what was stored since, also under keys that only a body names',
      'erased-key-chains':
        'an erasure follows keys from payment to payment and from body to body, also ids that SDKs generated',
      'erased-shared-ids': 'a shared id ties an erasure to nobody: the rows and webhooks of other users stay',
      'erased-only-own-bodies':
        'an erasure removes no webhook of a user whose id contains the erased one, however it is written',
      'erased-search-ends': 'the search of an erasure ends, however many keys an id has',
      'erased-request-counts':
        'a request that is repeated while an erasure runs or ends has its search run again',
      'erased-reprocessed':
        'reprocessing a webhook of an erased person records the pseudonym only, in facts and in the names of plans',
      'erased-bound-key':
        'an erased person whose subscription a code bound is found by either id; renewals still earn',
      'erased-user-and-key':
        'a text that is a user id and an erased key has a pseudonym as each, and the money of both goes on',
      'erased-quickly':
        'the request of an erasure reads the rows of its person only, and leaves the plans of reprocess runs to the workflow',
      'latest-real-delivery':
        'the latest delivery of a provider is found without reading those that were fed back after it',
      'histories-frozen': 'the recorded histories of a release are never edited',
      'erased-beside-others':
        'facts that arrive during an erasure leave no trace of the person and no wrong cent',
      'erased-only-pseudonym':
        'the database refuses every edit of a commission or a binding but from a user id to the pseudonym of an erasure',
      'personal-columns': 'every column that can hold text is classified by what erasure does with it',
      'click-traces-expire': 'User-Agents and address hashes of clicks are removed after their time',
    },
  },
  {
    title: 'Beyond the specification: reprocessing deliveries',
    promises: {
      'dry-run-changes-nothing': 'a dry run shows what would change, and changes nothing',
      'reprocess-output': 'a reprocess prints a table or JSON',
      'reprocess-appends-once': 'a reprocess appends what is missing, once',
      'reprocess-never-edits': 'a reprocess never edits existing rows',
      'reprocess-fills-kind':
        'an event that was ignored gets its kind and product with its money, which policies decide by',
      'reprocess-selection': 'a reprocess selects one delivery, or a range of receipt times',
      'reprocess-survives-crash': 'a reprocess survives a crash',
      'reprocess-nothing-to-do': 'deliveries processed by this version need no reprocess',
      'dry-run-equals-run': 'a dry run reports what the reprocess does',
      'dry-run-many-pages': 'a dry run of several pages reports what the reprocess does',
      'reprocess-report-from-ledger': 'a reprocess reports its appended rows from the ledger',
      'reprocess-skips-refused': 'a delivery that cannot be reprocessed does not block the others',
      'reprocess-stuck-and-cancelled': 'a reprocess says why it is stuck, and can be cancelled',
      'reprocess-cancelled-whole': 'a cancelled reprocess leaves no delivery half done',
      'reprocess-takes-no-lock': 'a dry run does not block updates of dashboard sums',
      'reprocess-api-applies-shown':
        'a run that applies a dry run appends exactly what that showed, and refuses a delivery that would append anything else',
      'reprocess-api-refusals':
        'a run over the API has at most 10,000 deliveries, all of the app, and applies only a dry run that has ended',
    },
  },
  {
    title: "Beyond the specification: comparing a provider's export",
    promises: {
      'reconcile-finds':
        'a comparison names exactly what the export and the ledger differ in, by the ids of the provider',
      'reconcile-feeds-back':
        'what is fed back gives the ledger that all webhooks would have given, once; without `--feed-back` nothing changes',
      'reconcile-same-rules':
        'a row of an export is read with the rules of webhooks: the same amount, user, instant, payment and refund',
      'reconcile-as-in-time':
        'a payment that was fed back is attributed as if its webhook had arrived in time, not as one that arrives now',
      'reconcile-output':
        'a comparison prints a table, CSV or JSON, and its exit status says whether there are differences',
      'reconcile-refuses':
        'what cannot be made correctly from an export, or could count twice, is not fed back, and a sentence says why',
      'reconcile-file-forms':
        'an export is read as CSV or JSON, with or without a byte order mark, with LF or CRLF, packed or not',
      'reconcile-wrong-file':
        'a file that is not the export is refused with what is missing and what it seems to be',
      'reconcile-compares-again':
        'after feeding back, the file is compared again: the exit status is 0 only if no difference is left',
      'reconcile-out-of-band':
        'an invoice of an export earns only what was paid through Stripe, and is refused without its payments',
      'reconcile-late-webhook': 'a webhook that arrives after its payment was fed back changes nothing',
      'reconcile-marked':
        'an event that was fed back is explained as added by the operator, and is not shown as the latest delivery of the provider',
      'reconcile-proof':
        'only a body that the holder of `SECRETS_KEY` made from an export, for this app and provider, is processed as one',
    },
  },
];

const CONSOLE: readonly PromiseSection[] = [
  {
    title: 'Beyond the specification: sessions of the console',
    promises: {
      'console-page':
        'the console is served under `/console`, at each of its addresses and behind the prefix of a proxy',
      'console-policy':
        'the console loads nothing from other hosts and runs no script and style that it does not contain',
      'session-cookie': 'the cookie of a session is out of reach for scripts, other sites and plain http',
      'session-own-origin': 'a session counts only for pages of the same origin: another port gets a 403',
      'session-not-beside-key': 'a session counts neither beside an `Authorization` header nor under `/sdk`',
      'session-routes-take-no-key': 'routes of sessions and keys take no key, whatever its permissions',
      'session-permissions-of-key': 'a session has the permissions that its key has at each call',
      'session-ends-with-key': 'a session ends with its key',
      'session-expiry': 'a session ends after 7 days without a call, and after 30 days in any case',
      'session-pays-when-raised':
        'a session pays for 15 minutes after a key with `payout` was entered, and the payout is booked on that key',
      'sign-in-limit': 'an address has ten attempts a minute to sign in',
      'sign-in-link-once': 'a sign-in link works once',
      'sign-in-link-command': '`tributary console` prints a sign-in link of an account',
      'first-link-creates-account': 'the first link of an installation creates its account',
      'key-within-session': 'a session gives a key only permissions that it has itself',
      'payout-key-after-sign-in':
        'a key with `payout` is created within 15 minutes of the sign-in, or in a session that may pay',
    },
  },
  {
    title: 'Beyond the specification: members',
    promises: {
      'member-roles': 'a member has the permissions of the role, and no other',
      'member-apps': 'an app outside those of a member is to the member as an unknown one, on every route',
      'member-managers':
        'only owners, and who signed in with a link of the operator, manage members; a key never does',
      'member-payout-given':
        'who may not pay gives nobody the right to pay, as a member or for an app more: a copied link and a browser left open suffice for none',
      'member-key-hidden': 'nobody lists, rotates or revokes the key of a member',
      'account-tenant-members': 'members of another account are a 404',
      'member-foreign-app': 'a member is given only apps of the account',
      'member-sessions': 'a member who is no owner sees and ends only the own sessions',
      'last-owner': 'an account that has an owner keeps one, also when two remove each other at once',
      'member-audit': 'each change of a member is in the audit, without the address',
      'member-pays-after-mailed-link':
        'a member pays within 15 minutes of a link that was mailed on request, and only with a role that pays',
      'member-grants-no-payout': 'a member whose session may not pay gives no key the permission `payout`',
      'sign-in-links-same-answer': 'an unknown address gets the answer of a known one, in the same time',
      'member-mails-to-address':
        'an account mails five invitations and thirty links to sign in within an hour to one address, however often it is removed and added again',
      'member-mails-of-account': 'an account mails a thousand invitations to members within an hour',
      'sign-in-links-limit':
        'attempts are limited by client and by mail address, and three mailed links of a member are open at a time',
    },
  },
  {
    title: 'Beyond the specification: passkeys of members',
    promises: {
      'passkey-sign-in':
        'a passkey signs in the member to whom it was added, with the role of the member at each call',
      'member-pays-with-passkey':
        'a member pays within 15 minutes of an answer of a passkey that was added in a session that could pay, and only with a role that pays',
      'passkey-needs-proof':
        'who adds a passkey has shown within 15 minutes to be the member: a copied link does not suffice for one that pays',
      'passkey-own-origin':
        'an answer counts only from a page of `PUBLIC_URL`, for its host, with a check of who uses the authenticator and with a right signature',
      'passkey-no-attestation':
        'what a maker of authenticators states is refused unread, so that no address in its certificates is asked',
      'passkey-challenge-once':
        'a challenge counts for one purpose and session, within five minutes and once, also for two calls at the same time',
      'passkey-of-one-member': 'a credential belongs to one member, and answers for no other one',
      'passkey-count': 'an authenticator whose count goes back is refused',
      'passkey-ends-with-member': 'removing a member revokes the passkeys',
      'passkey-audit': 'adding and revoking a passkey are in the audit, without its key',
    },
  },
  {
    title: 'Beyond the specification: sessions of creators',
    promises: {
      'creator-link-five-uses':
        "a creator's sign-in link works five times within 7 days, and not once it is revoked",
      'creator-revoke':
        'revoking the links of a creator ends the sessions, also one that begins at that moment',
      'creator-session-expiry':
        "a creator's session ends after 90 days without a call, and after 365 days in any case",
      'operator-session-expiry':
        "an operator's session ends after 12 hours, and its link works once and for 15 minutes",
      'operator-session-reaches-nothing-else': "an operator's session counts nowhere but under `/operator`",
      'operator-routes-take-no-other': 'routes of the operator take no key and no other session',
      'operator-sees-no-customers':
        'routes of the operator return nothing of customers, creators and money but the ids of rows that break a rule of the ledger, and no secret',
      'creator-session-reaches-nothing-else': "a creator's session counts nowhere but under `/creator`",
      'creator-routes-take-no-other': 'routes of creators take no key and no session of an account',
      'creator-sees-own':
        'a creator sees the own numbers, links, commissions and payouts, and nothing of customers or other creators',
      'see-as-creator':
        'a founder sees what a creator sees, with the session or key of the founder, and writes nothing by it',
    },
  },
  {
    title: 'Beyond the specification: who changed what',
    promises: {
      'audit-every-change':
        'every route that changes a setting, a key, a secret, a creator, a link, a payout or a session writes an audit row with its caller, in the statement that changes',
      'audit-command-line': 'a change by the command line writes an audit row that says so',
      'audit-no-secrets': 'no audit row has a key, a secret, a token, a hash of one, or an e-mail address',
      'audit-no-row-without-change': 'a call that changes nothing writes no audit row',
      'audit-once': 'a call or a statement that is repeated writes its audit rows once',
      'audit-append-only': 'the database refuses to change and to delete audit rows',
      'audit-payout-requester': 'a payout names the session and the key that asked for it',
      'audit-terms': 'a new version of a policy has what it says in sentences, and the version before it',
      'audit-payout-by-body': 'a change whose body needs the permission `payout` names the key that pays',
      'audit-erasure-names-nobody': 'the audit row of an erasure does not have the user id',
    },
  },
];

const WEBHOOKS_OUT: readonly PromiseSection[] = [
  {
    title: 'Beyond the specification: outgoing webhooks',
    promises: {
      'webhooks-out-with-fact':
        'the statement that writes a fact writes one message for each active endpoint of the app that asks for its type',
      'webhooks-out-sent':
        'commissions, their maturity and reversals, and payouts are announced, without the ids of users',
      'webhooks-out-stuck':
        'a delivery whose processing fails half a minute after its receipt is announced once',
      'webhooks-out-signed': 'each message is signed as Standard Webhooks defines',
      'webhooks-out-rotation': 'during the rotation of a secret each message has a signature of both secrets',
      'webhooks-out-secret-once': 'the secret of an endpoint is returned once and stored encrypted',
      'webhooks-out-retries':
        'a message is attempted ten times within three to four days, with the same id and body',
      'webhooks-out-send-again': 'a person sends a message again at any time, also one that waits',
      'webhooks-out-not-active':
        '409 for a test message to an endpoint that is not active, and for sending a message again to it',
      'webhooks-out-deactivated':
        'an endpoint is deactivated with a reason after three days without a success, and at once by a 410',
      'webhooks-out-begins-anew':
        'an endpoint that gets another URL, or is activated again, begins without failures',
      'webhooks-out-other-url':
        'messages that wait for a later attempt are sent at once when their endpoint gets another URL',
      'webhooks-out-isolated': 'an endpoint that never responds delays neither others nor exports',
      'webhooks-out-fair': 'the waiting messages of an account do not delay those of another one',
      'webhooks-out-recovered': 'a message whose workflow was lost is sent all the same',
      'webhooks-out-https': 'an endpoint has an address with https, unless the operator permits others',
      'webhooks-out-tls':
        'a message is sent only to a host whose certificate is valid, for its name and of a trusted authority, and otherwise says why not',
      'webhooks-out-public-addresses':
        'a URL with a private, loopback, link-local or reserved address is a 400, and nothing is sent to one, whatever name leads to it',
      'webhooks-out-limits':
        'an attempt has a time limit, a switch to another protocol and a flood of 1xx responses are failures, and the first 2 KiB of a response are read',
      'webhooks-out-endpoint-limit': '409 for more than 20 endpoints of one app, active or not',
      'webhooks-out-deleted':
        'an endpoint is deleted with its secrets at once, and its row after the last of its messages',
      'webhooks-out-lists': 'messages are listed by endpoint, status and type, page by page',
    },
  },
  {
    title: 'Beyond the specification: alerts',
    promises: {
      'alert-silence':
        'a provider that is silent for six hours and four times its usual gap opens an alert, and its next webhook closes it',
      'alert-rules':
        'failing deliveries, refused requests, a draft that waits, a payout run that does not advance and an endpoint that fails open an alert each',
      'alert-refused':
        'an alert about refused requests closes when none was refused for an hour and a webhook was accepted since',
      'alert-refunds':
        'refunds of 7 days above 5 % of revenue and above twice the share of 28 days open an alert, from 20 payments on',
      'alert-ledger':
        'a check of the ledger that finds rows opens an alert, and one that finds none any more closes it',
      'alert-once':
        'an alert opens once and closes once, whatever evaluates it at the same time, is killed or is late',
      'alert-never-edited': 'the database refuses every change of an alert except that it is closed',
      'alert-messages':
        'endpoints that ask for it get one message when an alert opens and one when it closes',
      'alert-all-apps': 'an app whose alerts cannot be evaluated does not stop those of others',
      'alert-bounded': 'an evaluation reads a bounded number of rows per app and provider',
      'alert-isolated': 'another account sees neither alerts nor the Slack URL',
      'alert-slack':
        'Slack gets one line of text about each alert, in which nothing is a mention or a link of others',
      'slack-url-secret':
        'the Slack URL is stored encrypted and is in no response, attempt, audit row or history, whatever its host responds',
      'slack-url-address': 'a Slack URL has an address as endpoints of outgoing webhooks have',
      'slack-url-permission': 'nobody without the permission setup sets, sees or tests the Slack URL',
      'slack-url-own-slot': 'the Slack URL is none of the 20 endpoints, and is not changed as they are',
    },
  },
];

/** The decisions that settle what the interface specification leaves open. */
export const DECISIONS: readonly PromiseSection[] = [
  ...IDENTITY,
  ...MONEY,
  ...OPERATION,
  ...CONSOLE,
  ...WEBHOOKS_OUT,
];
