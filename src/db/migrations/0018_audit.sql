-- Audit: who changed which setting, key, secret, creator, link or payout. docs/audit.md gives the reasons.

create domain audit_id as text collate "C" check (value ~ '^aud_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table audit_rows (
  id           audit_id primary key,
  account_id   account_id not null references accounts (id),
  -- Null for what belongs to the account, such as its keys.
  app_id       app_id references apps (id),
  changed_at   timestamptz not null default clock_timestamp(),
  -- Who. 'database': the statement named nobody, as one that a person sends by hand.
  actor_kind   text collate "C" not null
               check (actor_kind in ('key', 'session', 'creator', 'sign_in', 'operator', 'command_line', 'service', 'database')),
  key_id       key_id,
  session_id   session_id,
  affiliate_id affiliate_id,
  -- The label of the key, or the name of the creator, at that time.
  actor_label  text,
  action       text collate "C" not null,
  object_kind  text collate "C" not null,
  object_id    text collate "C" not null,
  -- The name of the object after the change.
  object_label text,
  -- The fields that changed. Never a secret, a key, or a hash of one. Null for a new object.
  before       jsonb,
  after        jsonb not null,
  request_id   text
);
create index audit_rows_by_account on audit_rows (account_id, changed_at desc, id desc);
create index audit_rows_by_app on audit_rows (account_id, app_id, changed_at desc, id desc);
create index audit_rows_by_object on audit_rows (account_id, object_id, changed_at desc, id desc);
create index audit_rows_by_key on audit_rows (account_id, key_id, changed_at desc, id desc) where key_id is not null;
create trigger audit_rows_append_only before update or delete or truncate on audit_rows
  for each statement execute function forbid_change();

-- A time-ordered id with the format of all ids.
create function new_audit_id() returns text language sql volatile as $$
  with made as materialized (select epoch_ms(clock_timestamp()) as ms, uuid_send(gen_random_uuid()) as random)
  select 'aud_' || string_agg(
           substr('0123456789abcdefghjkmnpqrstvwxyz',
                  1 + case when n < 10 then ((ms >> (45 - 5 * n)) & 31)::int else get_byte(random, n - 10) & 31 end, 1), '' order by n)
    from made, generate_series(0, 25) n
$$;

-- Names who makes the changes of a statement: a JSON object with kind, keyId, sessionId, affiliateId and requestId. Always
-- true, so that a statement has it among its conditions. It holds until the end of the statement's transaction.
create function acting_as(actor text) returns boolean language sql volatile as $$
  select set_config('tributary.actor', coalesce(actor, ''), true) is not null
$$;

-- The name of a column in the API.
create function camel_case(name text) returns text language sql immutable parallel safe as $$
  select string_agg(case when n = 1 then word else initcap(word) end, '' order by n)
    from string_to_table(name, '_') with ordinality w (word, n)
$$;

-- A value as an audit row shows it: an instant in epoch milliseconds, and of a hidden one only that it is there.
create function audit_value(column_name text, value jsonb, is_hidden boolean) returns jsonb language sql stable as $$
  select case when value is null or value = 'null' then 'null'
              when is_hidden then '"(not kept)"'
              when column_name ~ '_(at|until)$' and value not in ('"infinity"', '"-infinity"')
              then to_jsonb(epoch_ms((value #>> '{}')::timestamptz))
              else value end
$$;

-- Writes the audit row of a change. The arguments of the trigger: the kind of object, the column with its id, the columns that
-- the row may show, and the action of an insert. The row says of a column with `!` that it has a value, and not which one.
-- It fires after the statement, so acting_as was called. A change of no shown column writes nothing.
create function write_audit_row() returns trigger language plpgsql as $$
declare
  now_row jsonb := to_jsonb(new);
  old_row jsonb := case tg_op when 'UPDATE' then to_jsonb(old) end;
  actor jsonb := coalesce(nullif(current_setting('tributary.actor', true), '')::jsonb, '{"kind": "database"}');
  of_app text := coalesce(now_row->>'app_id', case tg_table_name when 'apps' then now_row->>'id' end);
  of_account text := coalesce(now_row->>'account_id', case tg_table_name when 'accounts' then now_row->>'id' end,
                              (select a.account_id from apps a where a.id = of_app));
  was jsonb;
  is_now jsonb;
begin
  -- A sign-in link that creates its account belongs to none.
  if of_account is null then
    return null;
  end if;
  select jsonb_object_agg(camel_case(name), audit_value(name, old_row->name, is_hidden)),
         jsonb_object_agg(camel_case(name), audit_value(name, now_row->name, is_hidden))
    into was, is_now
    from (select rtrim(field, '!') as name, right(field, 1) = '!' as is_hidden from string_to_table(tg_argv[2], ' ') field) f
   where now_row->name is distinct from coalesce(old_row->name, 'null');
  if is_now is null and old_row is not null then
    return null;
  end if;

  -- Who signs in is the session that begins. A payout is settled by a workflow, for who requested it.
  if tg_op = 'INSERT' and tg_table_name = 'sessions' then
    actor := actor || jsonb_build_object('kind', 'session', 'keyId', now_row->'key_id', 'sessionId', now_row->'id');
  elsif tg_op = 'INSERT' and tg_table_name = 'creator_sessions' then
    actor := actor || jsonb_build_object('kind', 'creator', 'affiliateId', now_row->'affiliate_id', 'sessionId', now_row->'id');
  elsif tg_table_name = 'payouts' then
    actor := coalesce(
      (select coalesce(r.actor, jsonb_build_object('kind', 'key', 'keyId', r.key_id)) from payout_requests r where r.payout_id = new.id),
      actor);
  end if;

  insert into audit_rows (id, account_id, app_id, actor_kind, key_id, session_id, affiliate_id, actor_label, action, object_kind,
                          object_id, object_label, before, after, request_id)
  values (
    new_audit_id(), of_account, of_app, actor->>'kind', actor->>'keyId', actor->>'sessionId', actor->>'affiliateId',
    coalesce((select coalesce(k.label, k.display) from account_keys k where k.id = actor->>'keyId'),
             (select f.name from affiliates f where f.id = actor->>'affiliateId')),
    case when old_row is null then coalesce(tg_argv[3], 'created')
         when is_now ? 'revokedAt' then 'revoked'
         when is_now ? 'endedAt' then 'ended'
         when is_now ? 'raisedUntil' then 'raised'
         when is_now ? 'cancelled' then 'cancelled'
         when is_now ?| array['expiresAt', 'previousExpiresAt', 'secretId'] then 'replaced'
         else 'changed' end,
    tg_argv[0], now_row->>tg_argv[1],
    coalesce(now_row->>'slug', now_row->>'name', now_row->>'affiliate_name', now_row->>'label', now_row->>'display',
             now_row->>'provider', now_row->>'description', (select f.name from affiliates f where f.id = now_row->>'affiliate_id')),
    case when old_row is not null then was end, coalesce(is_now, '{}'), actor->>'requestId');
  return null;
end $$;

-- The actor of the call that requested a payout. Null for a request of an older version, whose key is known.
lock table payout_requests in access exclusive mode nowait;
alter table payout_requests add column actor jsonb;

-- All locks at once, or none: the migration waits for no lock while it holds another.
lock table accounts, account_keys, sessions, sign_in_links, creator_sign_in_links, creator_sessions, apps, sdk_keys, webhook_secrets,
  identity_secrets, affiliates, links, payouts, payout_transfers, erasures, reprocess_runs,
  webhook_endpoints in share row exclusive mode nowait;

create trigger accounts_audit after insert or update on accounts
  for each row execute function write_audit_row('account', 'id', 'name');
create trigger account_keys_audit after insert or update of label, permissions, expires_at, revoked_at on account_keys
  for each row execute function write_audit_row('account_key', 'id', 'label permissions expires_at revoked_at');
create trigger sessions_audit after insert or update of ended_at, raised_key_id, raised_until on sessions
  for each row execute function write_audit_row('session', 'id', 'key_id ended_at raised_key_id raised_until', 'started');
create trigger sign_in_links_audit after insert on sign_in_links
  for each row execute function write_audit_row('sign_in_link', 'key_id', 'expires_at');
create trigger creator_sign_in_links_audit after insert or update of revoked_at on creator_sign_in_links
  for each row execute function write_audit_row('creator_sign_in_link', 'affiliate_id', 'expires_at revoked_at');
create trigger creator_sessions_audit after insert or update of ended_at on creator_sessions
  for each row execute function write_audit_row('creator_session', 'id', 'affiliate_id ended_at', 'started');
create trigger apps_audit after insert or update on apps
  for each row execute function write_audit_row('app', 'id',
    'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps');
create trigger sdk_keys_audit after insert or update of expires_at on sdk_keys
  for each row execute function write_audit_row('sdk_key', 'id', 'kind expires_at');
create trigger webhook_secrets_audit after insert or update of expires_at on webhook_secrets
  for each row execute function write_audit_row('webhook_secret', 'provider', 'provider environment expires_at');
create trigger identity_secrets_audit after insert or update of secret_id, previous_expires_at on identity_secrets
  for each row execute function write_audit_row('identity_secret', 'app_id', 'secret_id! previous_expires_at');
create trigger affiliates_audit after insert or update on affiliates
  for each row execute function write_audit_row('affiliate', 'id', 'name email! status default_commission_rate_bps external_id');
create trigger links_audit after insert or update on links
  for each row execute function write_audit_row('link', 'id',
    'affiliate_id slug destination_url ios_destination_url android_destination_url campaign active external_id');
create trigger payouts_audit after insert on payouts
  for each row execute function write_audit_row('payout', 'id', 'affiliate_id item_count total_cents recorded_at');
create trigger payout_transfers_audit after insert on payout_transfers
  for each row execute function write_audit_row('payout_transfer', 'id', 'payout_id state method reference note!');
create trigger webhook_endpoints_audit
  after insert or update of url, description, event_types, secret_id, previous_expires_at, deactivated_at on webhook_endpoints
  for each row execute function write_audit_row('webhook_endpoint', 'id',
    'url! description event_types secret_id! previous_expires_at deactivated_at deactivated_reason');
create trigger erasures_audit after insert on erasures
  for each row execute function write_audit_row('erasure', 'id', '', 'requested');
create trigger reprocess_runs_audit after insert or update of cancelled on reprocess_runs
  for each row execute function write_audit_row('reprocess_run', 'id', 'dry_run deliveries delivery_id applies_run_id cancelled', 'requested');
