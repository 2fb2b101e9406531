import type { Schemas } from './api/client.ts';

/** The words of the API as the pages show them. */

export const PROVIDERS: Readonly<Record<Schemas['Event']['source'], string>> = {
  revenuecat: 'RevenueCat',
  stripe: 'Stripe',
  paddle: 'Paddle',
  adapty: 'Adapty',
  superwall: 'Superwall',
};

export const EVENT_KINDS: Readonly<Record<Schemas['Event']['kind'], string>> = {
  purchase: 'Purchase',
  renewal: 'Renewal',
  trial_started: 'Trial started',
  trial_converted: 'Trial converted',
  product_change: 'Product change',
  cancellation: 'Cancellation',
  expiration: 'Expiration',
  refund: 'Refund',
  refund_reversed: 'Refund reversed',
  chargeback: 'Chargeback',
  chargeback_reversed: 'Chargeback reversed',
  transfer: 'Transfer',
  test: 'Test event',
  other: 'Other event',
};

export const OUTCOMES: Readonly<Record<Schemas['Event']['outcome'], string>> = {
  earned: 'Earned',
  reversed: 'Taken back',
  nothing: 'Nothing',
  waiting: 'Waiting',
  sandbox: 'Sandbox',
};

export const CAUSES: Readonly<Record<Schemas['UnattributedEvent']['likelyCause'], string>> = {
  missing_user_id: 'No user id in the event',
  anonymous_user_id: 'Only ids that an SDK generated',
  user_never_identified: 'The app never reported the user',
  user_id_mismatch: 'The app spells the user id differently',
  user_not_attributed: 'The user came through no creator',
  outside_attribution_window: 'Paid outside the attribution window',
  affiliate_paused: 'The creator was paused',
  affiliate_removed: 'The creator was removed',
  rate_zero: 'The commission was zero',
  no_policy_rule: 'No rule of the policy applied',
  ambiguous_code: 'Purchase codes of several creators',
  missing_exchange_rate: 'No exchange rate for the day',
  price_unknown: 'No usable amount',
  processing: 'Still being processed',
  test_key_only: 'Only a test SDK key reported the user',
};

/** By what a user came to a creator. */
export const MATCH_METHODS: Readonly<Record<NonNullable<Schemas['Commission']['matchMethod']>, string>> = {
  claim_token: 'a click',
  code: 'a link code',
  deferred: 'a click from the same address',
  purchase_code: 'a purchase code',
  manual: 'a manual attribution',
};

/** What bonuses and deductions are for. */
export const ENTRY_CATEGORIES: Readonly<Record<Schemas['Entry']['category'], string>> = {
  bonus: 'Bonus',
  fixed_fee: 'Fixed fee',
  unreported_refund: 'Refund that was not reported',
  opening_balance: 'Opening balance',
  write_off: 'Write-off',
  other: 'Other',
};

export const DELIVERY_STATUSES: Readonly<Record<Schemas['Delivery']['processingStatus'], string>> = {
  received: 'Received',
  processing: 'In progress',
  processed: 'Processed',
  duplicate: 'Duplicate',
  ignored: 'Ignored',
  failed: 'Failed',
  rejected: 'Refused',
};

/** The states of a reprocess run, in words. */
export const RUN_STATES: Readonly<
  Record<Schemas['ReprocessRun']['status'], readonly [tone: 'good' | 'bad' | 'wait' | 'plain', text: string]>
> = {
  waiting: ['wait', 'Waiting'],
  running: ['wait', 'In progress'],
  cancelling: ['wait', 'Stopping'],
  finished: ['good', 'Finished'],
  cancelled: ['plain', 'Cancelled'],
};
