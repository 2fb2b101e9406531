/** Why a paid event earned no commission (docs/contract.md, "Unattributed"). */
export type LikelyCause =
  | 'missing_user_id'
  | 'anonymous_user_id'
  | 'user_never_identified'
  | 'user_id_mismatch'
  | 'user_not_attributed'
  | 'outside_attribution_window'
  | 'affiliate_paused'
  | 'affiliate_removed'
  | 'rate_zero'
  | 'no_policy_rule'
  | 'ambiguous_code'
  | 'missing_exchange_rate'
  | 'price_unknown'
  | 'processing'
  | 'test_key_only';

/** Why a paid event earned no commission: what happened, then what the founder can do. */
export const CAUSE_EXPLANATIONS: Readonly<Record<LikelyCause, string>> = {
  missing_user_id:
    "The provider's event contains no user id. Set the app's own user id at the billing provider before the purchase: Set-up in the console names the field, and so does setupHint in the API.",
  anonymous_user_id:
    "The event contains only ids that the provider's SDK generated, or placeholders such as undefined, null or guest. Log the user in to the SDK with the app's own user id before the purchase: Set-up in the console says how, and so does setupHint in the API.",
  user_never_identified:
    'No device has reported this user. Call identify(userId) with exactly the string that the billing provider reports: this payment is then evaluated again.',
  user_id_mismatch:
    'The app reported this user with a different spelling (case, spaces or a prefix). Pass the same string to identify(userId) and to the billing provider: this payment is then evaluated again.',
  user_not_attributed:
    "The user is known, but the user's device came through no creator. No action is needed, unless the install call should have contained a claim token or a code.",
  outside_attribution_window:
    "The user was linked to a creator only after this payment, and the payment is older than the creator's click or than the attribution window. Call identify(userId) before the purchase, or raise the attribution window in the app's settings (attributionWindowDays in the API) if calls come late.",
  affiliate_paused:
    "The creator was paused when this payment was evaluated, so it earns no commission. Set the creator's status to active: later payments then earn.",
  affiliate_removed:
    "The creator was removed when this payment was evaluated, so it earns no commission. Set the creator's status to active: later payments then earn.",
  rate_zero:
    "The commission was zero when this payment was evaluated, and stays zero. Raise the creator's commission rate, or the app's if the creator has none: later payments then earn.",
  no_policy_rule:
    "No rule of the creator's commission policy applied to this payment, so it earns no commission. Publish a version of the policy with a rule without conditions at its end: payments after its date then earn.",
  ambiguous_code:
    'The payment came with codes of several creators, so it earns for none of them. Give the customer to the right one: Attribute in the console, or POST /apps/:appId/manual-attributions.',
  missing_exchange_rate:
    "There is no exchange rate for the payment's currency on its day or in the seven days before. Ask the operator to import exchange rates (tributary rates import): the payment is then evaluated automatically.",
  price_unknown:
    'The provider reported no amount, or one above the limit that the operator sets for a payment (MAX_PAYMENT_USD), and the service does not estimate one. Look up the amount at the provider and settle it with the creator manually. If the provider reports the payment again with an amount, it is evaluated automatically.',
  test_key_only:
    "Only devices with a test SDK key (pk_test_…) have reported this user, and what they report never earns. Build the app that customers use with the live key (pk_live_…): when it reports the user's device and the user, this payment is evaluated again.",
  processing:
    'This event is still being processed. No action is needed: check again in a moment. If it does not finish, the page Deliveries of the console shows the error, and so does the webhooks diagnostic of the API.',
};

/**
 * Whether a payment can still earn: when the cause is removed, without anybody's action at the app or the provider, or not,
 * because it was decided.
 */
export const HEALING = ['when_fixed', 'automatically', 'never'] as const;
export type Healing = (typeof HEALING)[number];

export const CAUSE_HEALING: Readonly<Record<LikelyCause, Healing>> = {
  missing_user_id: 'when_fixed',
  anonymous_user_id: 'when_fixed',
  user_never_identified: 'when_fixed',
  user_id_mismatch: 'when_fixed',
  user_not_attributed: 'when_fixed',
  outside_attribution_window: 'when_fixed',
  affiliate_paused: 'never',
  affiliate_removed: 'never',
  rate_zero: 'never',
  no_policy_rule: 'never',
  ambiguous_code: 'when_fixed',
  missing_exchange_rate: 'automatically',
  price_unknown: 'never',
  processing: 'automatically',
  test_key_only: 'when_fixed',
};

/** All causes. */
export const LIKELY_CAUSES = Object.keys(CAUSE_EXPLANATIONS) as readonly LikelyCause[];
