import { expect, test } from '@jest/globals';
import { connect } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';

/**
 * Columns of audited tables that no audit row states: ids, hashes, ciphertexts, progress, and times that the service sets by itself.
 * What a person sets belongs into the trigger of its table instead.
 */
const NOT_AUDITED: Readonly<Record<string, string>> = {
  account_keys: 'account_id created_at display id is_console is_member key_sha256 last_used_at',
  accounts: 'created_at id',
  affiliate_groups: 'app_id created_at id',
  // When the address was set: the audit row of its change says it.
  affiliates: 'app_id created_at email_set_at email_set_by id',
  // When the first policy takes effect: the assignment of the policy says it.
  // Who has set the schedule is in the audit row of the change.
  apps: 'account_id assigns_policies_to_creators created_at id notifications_since payout_schedule_key payout_schedule_since policies_from purchase_codes_from self_test_passed_at',
  codes: 'app_id created_at id',
  creator_sessions: 'app_id created_at expires_at id last_used_at token_sha256 user_agent',
  creator_sign_in_links: 'affiliate_id app_id created_at token_sha256 uses_left',
  entries: 'account_id app_id created_at id key_id',
  erasures:
    'app_id by_hash counts finished_at followed_keys id key_id pseudonym relayed_at reopened_at requested_at revision scanned_at scanned_id search_again settles_at user_hash waiting',
  group_memberships: 'affiliate_id app_id created_at position',
  identity_secrets:
    'app_id ciphertext created_at encryption_key_id former_secret_ids previous_ciphertext previous_encryption_key_id',
  links: 'app_id created_at id',
  manual_attributions: 'account_id app_id created_at id key_id position',
  members: 'account_id created_at id key_id',
  other_transfers: 'account_id app_id created_at key_id payout_id',
  passkeys: 'account_id created_at credential_id id last_used_at public_key sign_count',
  payees: 'account_id address_set_by app_id ciphertext encryption_key_id id previous_version set_at set_by',
  payout_blocks: 'account_id app_id created_at id key_id position previous',
  payout_file_downloads: 'account_id app_id downloaded_at file_id key_id',
  payout_runs:
    'account_id actor app_id approved_at as_of created_at ended_at expires_at id includes_without_payee key_id paid_cents paid_count relayed_at',
  payout_transfers: 'account_id app_id created_at id key_id position previous_position previous_state',
  payouts: 'affiliate_name app_id created_at csv_gzip csv_sha256 id',
  policies: 'app_id created_at id',
  policy_assignments: 'app_id created_at position scope_id',
  policy_versions: 'app_id created_at id',
  reprocess_runs:
    'app_id applied changed commission_cents created_at finished_at from_at id key_id last_delivery_id last_error last_received_at processing_status provider relayed_at revenue_cents seen to_at',
  sdk_keys: 'app_id created_at display id key_sha256',
  sessions: 'account_id created_at expires_at id last_used_at link_made_by token_sha256 user_agent',
  sign_in_links: 'account_id created_at key_id made_by raises session_id token_sha256',
  webhook_endpoints:
    'app_id ciphertext created_at encryption_key_id failing_since failures former_secret_ids id is_slack next_probe_at previous_ciphertext previous_encryption_key_id secret_created_at slot',
  webhook_secrets: 'app_id ciphertext created_at encryption_key_id id live_slot',
};

test('a column of an audited table is in its audit rows, or is known not to be', async () => {
  const database = await createTestDatabase();
  const sql = connect({ url: database.url });
  try {
    const rows = await sql<{ table: string; columns: string }>`
      select c.relname::text as table, string_agg(a.attname, ' ' order by a.attname) as columns
        from pg_trigger t
        join pg_class c on c.oid = t.tgrelid
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where t.tgname like '%\\_audit'
         and a.attname not in (select rtrim(field, '!') from string_to_table(split_part(encode(t.tgargs, 'escape'), '\\000', 3), ' ') field)
       group by 1`;
    expect(Object.fromEntries(rows.map(({ table, columns }) => [table, columns]))).toEqual(NOT_AUDITED);
  } finally {
    await sql.close();
    await database.drop();
  }
});
