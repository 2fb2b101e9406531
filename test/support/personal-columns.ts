/**
 * What an erasure does with a column that can hold text or bytes:
 *
 * - `none`: the column says nothing about a user of the app. Creators and founders are no users.
 * - `pseudonym`: the identifier becomes a random text.
 * - `removed`: the value or the row is removed.
 * - `reference`: a reference at the billing provider is kept: a refund must find its payment, a repeat must not count twice.
 * - `keyed`: a keyed hash, or bytes encrypted with SECRETS_KEY.
 * - `expires`: encrypted, and removed after a day.
 *
 * A new column has to be added here, and one that is about users to src/db/erasure-rows.ts or erasure-deliveries.ts and docs/erasure.md.
 */
export type Treatment = 'none' | 'pseudonym' | 'removed' | 'reference' | 'keyed' | 'expires';

/** The columns of each table by treatment. Columns of own ids and of closed lists are left out by their type. */
export const PERSONAL_COLUMNS: Readonly<Record<string, Partial<Record<Treatment, string>>>> = {
  account_keys: { none: 'key_sha256 display permissions label' },
  accounts: { none: 'name' },
  address_keys: { none: 'ciphertext encryption_key_id' },
  adjustments: { none: 'store kind state currency', reference: 'ref payment_ref' },
  affiliate_counts: { none: 'status' },
  affiliate_groups: { none: 'name' },
  // What was found about providers, payout runs and endpoints. It names no user.
  alerts: { none: 'rule subject facts' },
  affiliates: { none: 'name email email_set_by status external_id note tags' },
  apps: {
    none: 'name link_subdomain destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes payout_approval payout_schedule notification_emails brand_color',
  },
  audit_rows: {
    none: 'actor_kind actor_label action object_kind object_id object_label before after request_id',
  },
  attributions: { none: 'match_method sdk code_id', pseudonym: 'device_id' },
  bindings: { none: 'counts_with key_source first_paid_attribution_id', pseudonym: 'customer_user_id' },
  clicks: { removed: 'claim_token ip_hash user_agent', pseudonym: 'claimed_by_device' },
  // What creators give to many customers.
  codes: { none: 'namespace value external_id' },
  commissions: {
    none: 'kind reason status rate_source match_method entry_id policy_version_id base_kind policy_inputs',
    pseudonym: 'customer_user_id',
  },
  deferred_clicks: { removed: 'address_hash' },
  deliveries: {
    none: 'processing_status last_error',
    // The signature and the hash of a body that is removed: only who has the body can compare it.
    reference: 'proof body_sha256 source_event_id',
  },
  delivery_bodies: { none: 'encryption_key_id', removed: 'body' },
  // What founders write about a creator, whose reason the API asks to name no customer.
  // The secret of a mail is a sign-in link or a code, which is removed when the mail has ended.
  // The recipient is a creator or somebody who runs the app. The subject of a mail to a member has a keyed hash of the address.
  emails: {
    none: 'account_id member_id kind subject_id ciphertext encryption_key_id status last_problem recipient attempt_id',
  },
  entries: { none: 'category reason external_id' },
  // Of creators, who are no users of the app.
  former_addresses: { none: 'address' },
  erased_identifiers: { none: 'kind pseudonym', keyed: 'hash' },
  erasure_key: { keyed: 'ciphertext', none: 'encryption_key_id' },
  erasure_subjects: { none: 'source encryption_key_id', keyed: 'hash', removed: 'ciphertext' },
  erasures: { none: 'pseudonym waiting counts', keyed: 'user_hash' },
  events: {
    none: 'kind product_id store currency fx_source likely_cause',
    pseudonym: 'customer_user_id',
    reference: 'source_event_id payment_ref',
  },
  duties: { none: 'duty' },
  exchange_rates: { none: 'currency source' },
  idempotency_keys: {
    none: 'idempotency_key request_sha256 seed seed_key_id claim_id response_key_id',
    expires: 'response',
  },
  identities: { removed: 'device_id customer_user_id address_hash' },
  identity_secrets: {
    none: 'ciphertext encryption_key_id previous_ciphertext previous_encryption_key_id former_secret_ids',
  },
  installation: { none: 'history' },
  link_subdomains: { none: 'subdomain' },
  // A founder says why a user belongs to a creator, and may name the user.
  manual_attributions: { removed: 'reason' },
  // The names of rules.
  ledger_findings: { none: 'check_name' },
  // People who work for the founder. Removing a member erases the address.
  members: { none: 'email name role app_ids' },
  // What identifies the browsers and devices of these people. Revoking a passkey erases its key.
  passkeys: { none: 'name credential_id public_key' },
  used_passkey_challenges: { none: 'challenge_sha256' },
  links: {
    none: 'slug destination_url ios_destination_url android_destination_url campaign external_id',
  },
  losing_touches: { none: 'match_method', pseudonym: 'device_id' },
  payment_aliases: { none: 'store', reference: 'alias_ref payment_ref' },
  // A code that many customers have; what looks like an address is not stored.
  payment_codes: { none: 'store namespace value', reference: 'payment_ref' },
  payment_user_keys: { pseudonym: 'user_key' },
  subscription_codes: { none: 'namespace value', pseudonym: 'user_key customer_user_id' },
  payment_users: { pseudonym: 'customer_user_id' },
  payments: { none: 'store currency likely_cause attribution_id decided_binding_id', reference: 'ref' },
  policies: { none: 'name' },
  policy_assignments: { none: 'scope_id' },
  policy_versions: { none: 'terms' },
  payout_chain: { none: 'csv_sha256 previous_hash hash' },
  payout_requests: { none: 'idempotency_key status actor' },
  // What founders state about the money of a creator.
  payout_blocks: { none: 'state reason' },
  payout_runs: { none: 'kind status actor scheduled_month' },
  payout_schedule_months: { none: 'month' },
  payout_run_items: { none: 'affiliate_name method resend_result' },
  payout_run_files: { none: 'method sha256 encryption_key_id', removed: 'ciphertext' },
  payout_run_exclusions: { none: 'affiliate_name reason' },
  // Where the money of a creator goes. It is erased with the creator's payees.
  payees: { none: 'method encryption_key_id address_set_by', removed: 'ciphertext' },
  payee_changes: { none: 'method encryption_key_id code_hash', removed: 'ciphertext' },
  other_transfers: { none: 'reference' },
  payout_transfers: { none: 'state previous_state method reference note' },
  // The CSV has ids of commissions and events, and nothing of a user.
  payouts: { none: 'affiliate_name csv_gzip csv_sha256' },
  reprocess_changes: { none: 'refusal', reference: 'changes' },
  reprocess_names: { pseudonym: 'name' },
  reprocess_runs: { none: 'last_error processing_status' },
  retention_progress: { none: 'kind resume_after' },
  rollup_blocks: { none: 'scope scope_id' },
  rollup_deltas: { none: 'id' },
  rollups: { none: 'scope scope_id affiliate_status' },
  sdk_keys: { none: 'kind key_sha256 display' },
  self_test_requests: { none: 'body_sha256' },
  // Browsers of creators and of the people who run the app.
  operator_sessions: { none: 'token_sha256 user_agent' },
  operator_sign_in_links: { none: 'token_sha256' },
  creator_sessions: { none: 'token_sha256 user_agent' },
  creator_sign_in_links: { none: 'token_sha256' },
  sessions: { none: 'token_sha256 user_agent link_made_by' },
  sign_in_links: { none: 'token_sha256 made_by' },
  test_attributions: { none: 'match_method sdk', removed: 'device_id' },
  test_identities: { removed: 'device_id customer_user_id' },
  user_links: { pseudonym: 'user_key customer_user_id' },
  user_transfers: { none: 'role', pseudonym: 'customer_user_id' },
  // The endpoint's own responses. A message has no id of a user.
  webhook_attempts: { none: 'problem response' },
  webhook_endpoints: {
    none: 'url description event_types ciphertext encryption_key_id previous_ciphertext previous_encryption_key_id former_secret_ids deactivated_reason',
  },
  webhook_messages: { none: 'type subject_id data status last_problem' },
  webhook_secrets: { none: 'ciphertext encryption_key_id' },
};
