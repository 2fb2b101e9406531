-- The schema is split by subject into four files, which together are the baseline. `src/db/schema.sql` shows the result.
--
-- 0001_tracking: id types, accounts, apps, keys, affiliates, links, clicks, attributions, bindings
-- 0002_billing:  deliveries, self-tests, events, payments, refunds and disputes, exchange rates
-- 0003_ledger:   commissions, payouts, reprocess runs, idempotency keys, and the triggers that guard the ledger
-- 0004_rollups:  sums for dashboards, maintained by triggers
--
-- Each rule that moves money is a constraint here and a function in src/domain or src/db. docs/money.md lists both.

---------------------------------------------------------------------------------------------------------------------
-- Types

-- One domain for each id prefix, so that an id of one kind cannot be stored as another.
create domain account_id    as text collate "C" check (value ~ '^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain app_id        as text collate "C" check (value ~ '^app_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain affiliate_id  as text collate "C" check (value ~ '^aff_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain link_id       as text collate "C" check (value ~ '^lnk_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain click_id      as text collate "C" check (value ~ '^clk_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain attribution_id as text collate "C" check (value ~ '^att_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain event_id      as text collate "C" check (value ~ '^evt_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain delivery_id   as text collate "C" check (value ~ '^del_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain commission_id as text collate "C" check (value ~ '^com_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain payout_id     as text collate "C" check (value ~ '^pay_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain key_id        as text collate "C" check (value ~ '^key_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain secret_id     as text collate "C" check (value ~ '^sec_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain payout_request_id as text collate "C" check (value ~ '^req_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain payment_id    as text collate "C" check (value ~ '^pmt_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain adjustment_id as text collate "C" check (value ~ '^adj_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain binding_id    as text collate "C" check (value ~ '^bnd_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain installation_id as text collate "C" check (value ~ '^ins_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain reprocess_run_id as text collate "C" check (value ~ '^rpr_[0-7][0-9a-hjkmnp-tv-z]{25}$');
-- Basis points: 10000 is 100 %.
create domain rate_bps      as integer check (value between 0 and 10000);
-- Whole US cents, within the range that a JavaScript number represents exactly.
create domain cents         as bigint check (value between -9007199254740991 and 9007199254740991);
create domain environment   as text collate "C" check (value in ('production', 'sandbox'));
create domain provider      as text collate "C" check (value in ('revenuecat', 'adapty', 'superwall', 'stripe', 'paddle'));

-- An instant inside JSON: whole milliseconds since 1970, the unit that the application uses.
create function epoch_ms(at timestamptz) returns bigint language sql immutable parallel safe as $$
  select floor(extract(epoch from at) * 1000)::bigint
$$;

---------------------------------------------------------------------------------------------------------------------
-- Statistics

-- Renews the statistics of the tables that have more than doubled since Postgres counted their rows, and returns their
-- names. Without statistics, or with those of an empty table, any index that begins with the app looks equally good. A
-- small table needs none. A table that another session analyzes is left alone. It runs as the owner of the tables: only the
-- owner may analyze them.
create function analyze_grown_tables() returns text[] language plpgsql security definer set search_path from current as $$
declare
  grown text[] := array(
    select c.relname::text
      from pg_class c join pg_stat_user_tables s on s.relid = c.oid
     where c.relnamespace = current_schema()::regnamespace
       and s.n_live_tup > 300 + 2 * greatest(c.reltuples, 0)
     order by c.relname);
  name text;
begin
  foreach name in array grown loop
    execute format('analyze (skip_locked) %I', name);
  end loop;
  return grown;
end $$;

---------------------------------------------------------------------------------------------------------------------
-- The installation

-- One row, which the first service writes. Its id names the task queues and Schedules of this installation in Temporal, so
-- that several installations can share a namespace.
create table installation (
  id       installation_id primary key,
  only_row boolean not null unique default true check (only_row)
);

---------------------------------------------------------------------------------------------------------------------
-- Accounts, apps, keys, secrets

create table accounts (
  id         account_id primary key,
  name       text not null check (length(name) between 1 and 200),
  created_at timestamptz not null default now()
);

create table account_keys (
  id          key_id primary key,
  account_id  account_id not null references accounts (id),
  key_sha256  bytea not null unique check (length(key_sha256) = 32),
  display     text not null,
  permissions text[] not null
              check (permissions <@ array['read', 'write', 'setup', 'payout'] and cardinality(permissions) > 0),
  created_at  timestamptz not null default now(),
  expires_at  timestamptz,
  revoked_at  timestamptz
);
create index account_keys_by_account on account_keys (account_id, created_at);

create table apps (
  id                      app_id primary key,
  account_id              account_id not null references accounts (id),
  name                    text not null check (length(name) between 1 and 200),
  commission_rate_bps     rate_bps not null,
  attribution_window_days integer not null check (attribution_window_days between 1 and 365),
  hold_period_days        integer not null check (hold_period_days between 0 and 365),
  deferred_window_minutes integer not null check (deferred_window_minutes between 0 and 1440),
  -- The current one. A trigger stores it in link_subdomains, whose primary key makes it unique.
  link_subdomain          text collate "C" not null
                          check (link_subdomain ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  -- Whether identify requires a signature that the app's server made with the secret in identity_secrets.
  identity_verification   boolean not null default false,
  -- The custom schemes that new links may lead to. Null when the app declared none: each accepted scheme is then allowed.
  destination_schemes     text[] check (cardinality(destination_schemes) <= 20),
  -- The connected accounts of Stripe Connect whose events count as the app's own.
  stripe_accounts         text[] not null default '{}' check (cardinality(stripe_accounts) <= 100),
  -- The iOS and Android apps that open the app's links directly. An Android app: packageName, sha256CertFingerprints.
  ios_app_ids             text[] not null default '{}' check (cardinality(ios_app_ids) <= 10),
  android_apps            jsonb not null default '[]' check (jsonb_array_length(android_apps) <= 10),
  created_at              timestamptz not null default now()
);
create index apps_by_account on apps (account_id, created_at, id);
create index apps_with_mobile_apps on apps (created_at, id) where cardinality(ios_app_ids) > 0 or android_apps <> '[]';

-- For triggers of tables whose rows are never deleted or edited.
create function forbid_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % cannot be changed or deleted', tg_table_name using errcode = 'integrity_constraint_violation';
end $$;

-- Every subdomain that an app has held. It belongs to the app permanently: published links contain it. The position limits
-- how many subdomains an app can hold.
create table link_subdomains (
  subdomain  text collate "C" primary key,
  app_id     app_id not null references apps (id),
  position   integer not null constraint at_most_20_subdomains check (position between 1 and 20),
  created_at timestamptz not null default now(),
  unique (app_id, position),
  unique (app_id, subdomain)
);
create trigger link_subdomains_immutable before update or delete or truncate on link_subdomains
  for each statement execute function forbid_change();

-- The insert fails when another app has held the subdomain.
create function hold_subdomain() returns trigger language plpgsql as $$
begin
  insert into link_subdomains (subdomain, app_id, position)
  select new.link_subdomain, new.id, 1 + (select count(*) from link_subdomains where app_id = new.id)
   where not exists (select from link_subdomains where app_id = new.id and subdomain = new.link_subdomain);
  return null;
end $$;
create trigger apps_hold_subdomain after insert or update of link_subdomain on apps
  for each row execute function hold_subdomain();

create table sdk_keys (
  id         key_id primary key,
  app_id     app_id not null references apps (id),
  -- What a test key reports is stored in the test_ tables, and neither counts nor earns.
  kind       text collate "C" not null check (kind in ('live', 'test')),
  key_sha256 bytea not null unique check (length(key_sha256) = 32),
  display    text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz
);
create unique index sdk_keys_one_current on sdk_keys (app_id, kind) where expires_at is null;

create table webhook_secrets (
  id            secret_id primary key,
  app_id        app_id not null references apps (id),
  provider      provider not null,
  environment   environment not null,
  -- AES-256-GCM: nonce, ciphertext and tag together. encryption_key_id names the key that decrypts it.
  ciphertext    bytea not null,
  encryption_key_id text not null,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  -- A secret without a slot verifies no request. Each slot is taken once, so at most three secrets of an app and provider do.
  live_slot     smallint check (live_slot between 1 and 3),
  unique (app_id, id),
  constraint webhook_secrets_live_slot unique (app_id, provider, live_slot),
  constraint current_secret_has_slot check (expires_at is not null or live_slot is not null)
);
create unique index webhook_secrets_one_current on webhook_secrets (app_id, provider) where expires_at is null;
create index webhook_secrets_by_app on webhook_secrets (app_id, provider, created_at);

-- The secret that an app's server signs user ids with, and the one before it. An app has at most these two.
create table identity_secrets (
  app_id            app_id primary key references apps (id),
  secret_id         secret_id not null unique,
  -- AES-256-GCM: nonce, ciphertext and tag together. encryption_key_id names the key that decrypts it.
  ciphertext        bytea not null,
  encryption_key_id text not null,
  created_at        timestamptz not null default now(),
  previous_ciphertext        bytea,
  previous_encryption_key_id text,
  previous_expires_at        timestamptz,
  constraint previous_is_complete check (num_nulls(previous_ciphertext, previous_encryption_key_id, previous_expires_at) in (0, 3))
);

---------------------------------------------------------------------------------------------------------------------
-- Affiliates, links, clicks

create table affiliates (
  id         affiliate_id primary key,
  app_id     app_id not null references apps (id),
  name       text not null check (length(name) between 1 and 200),
  email      text,
  status     text not null default 'active' check (status in ('active', 'paused', 'removed')),
  default_commission_rate_bps rate_bps,
  -- The caller's own id, so that an import that runs twice creates nothing twice.
  external_id text collate "C" check (length(external_id) between 1 and 200),
  created_at timestamptz not null default now(),
  unique (app_id, id)
);
create unique index affiliates_external_id on affiliates (app_id, external_id) where external_id is not null;
create index affiliates_by_created on affiliates (app_id, created_at, id);
create index affiliates_by_status_created on affiliates (app_id, status, created_at, id);
create index affiliates_by_name on affiliates (app_id, lower(name) collate "C", id);
create index affiliates_by_email on affiliates (app_id, lower(email) collate "C", created_at, id) where email is not null;
create index affiliates_by_status_name on affiliates (app_id, status, lower(name) collate "C", id);

create table links (
  id              link_id primary key,
  app_id          app_id not null references apps (id),
  affiliate_id    affiliate_id not null,
  slug            text not null check (slug ~ '^[A-Za-z0-9_-]{2,64}$'),
  destination_url text not null,
  -- Where visitors on iOS and on Android are redirected instead. Null: to destination_url.
  ios_destination_url     text,
  android_destination_url text,
  campaign        text,
  active          boolean not null default true,
  external_id     text collate "C" check (length(external_id) between 1 and 200),
  created_at      timestamptz not null default now(),
  unique (app_id, id),
  unique (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create unique index links_external_id on links (app_id, external_id) where external_id is not null;
create unique index links_slug on links (app_id, lower(slug) collate "C");
create index links_by_created on links (app_id, created_at, id);
create index links_by_affiliate on links (app_id, affiliate_id, created_at, id);
create index links_by_active on links (app_id, active, created_at, id);
create index links_by_affiliate_active on links (app_id, affiliate_id, active, created_at, id);

create function forbid_slug_change() returns trigger language plpgsql as $$
begin
  raise exception 'the slug of a link cannot be changed' using errcode = 'integrity_constraint_violation';
end $$;
create trigger links_slug_immutable before update of slug on links
  for each row when (old.slug is distinct from new.slug) execute function forbid_slug_change();

create table clicks (
  id           click_id primary key,
  app_id       app_id not null,
  affiliate_id affiliate_id not null,
  link_id      link_id not null,
  claim_token  uuid not null,
  ip_hash      text,
  user_agent   text,
  is_bot       boolean not null,
  clicked_at   timestamptz not null,
  created_at   timestamptz not null default now(),
  -- The first device that redeems the token owns it permanently.
  claimed_by_device text,
  unique (app_id, claim_token),
  unique (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id)
);

---------------------------------------------------------------------------------------------------------------------
-- Deferred matching
-- docs/redirect.md states what is stored of a visitor's address, and for how long.

-- The random key that addresses are hashed with on one UTC day. Once the row is deleted, its hashes cannot be computed
-- again.
create table address_keys (
  day_starts_at timestamptz primary key check (date_trunc('day', day_starts_at, 'UTC') = day_starts_at),
  -- AES-256-GCM: nonce, ciphertext and tag together. encryption_key_id names the key that decrypts it.
  ciphertext    bytea not null,
  encryption_key_id text not null
);

-- Clicks of the redirect that an install without a claim token may still match. A row is deleted when its click is claimed
-- or when the longest window has passed. So there are few hashes, and rows of `clicks` are never rewritten for them.
create table deferred_clicks (
  click_id     click_id primary key,
  app_id       app_id not null,
  link_id      link_id not null,
  -- A keyed hash, different for each app and day. Never the hash that a caller of POST /clicks sends.
  address_hash bytea not null check (length(address_hash) = 32),
  clicked_at   timestamptz not null,
  foreign key (app_id, click_id) references clicks (app_id, id),
  foreign key (app_id, link_id) references links (app_id, id)
);
-- One step in this index gives the next link of an address together with its newest click.
create index deferred_clicks_by_address on deferred_clicks (app_id, address_hash, link_id, clicked_at);
create index deferred_clicks_by_age on deferred_clicks (clicked_at);

-- A claimed click is no longer available to deferred matches, whichever match method claimed it.
create function delete_deferred_click() returns trigger language plpgsql as $$
begin
  delete from deferred_clicks where click_id = new.id;
  return null;
end $$;
create trigger clicks_claimed after update of claimed_by_device on clicks for each row
  when (new.claimed_by_device is not null) execute function delete_deferred_click();

---------------------------------------------------------------------------------------------------------------------
-- Attributions and bindings: from a device to a user

create table attributions (
  id            attribution_id primary key,
  app_id        app_id not null references apps (id),
  device_id     text not null check (length(device_id) between 1 and 200),
  affiliate_id  affiliate_id not null,
  link_id       link_id,
  click_id      click_id,
  match_method  text not null check (match_method in ('claim_token', 'code', 'deferred')),
  -- The winning touch: the click, or for a code the install itself.
  touched_at    timestamptz not null,
  first_open_at timestamptz not null,
  -- The SDK that reported the install, and its version.
  sdk           text check (sdk ~ '^[a-z-]{1,20}/[0-9A-Za-z.+-]{1,30}$'),
  created_at    timestamptz not null default now(),
  unique (app_id, device_id),
  unique (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, click_id) references clicks (app_id, id)
);

-- Touches that came after a device had its attribution. They only serve to explain the decision.
create table losing_touches (
  app_id       app_id not null,
  device_id    text not null,
  affiliate_id affiliate_id not null,
  link_id      link_id,
  click_id     click_id,
  match_method text not null check (match_method in ('claim_token', 'code', 'deferred')),
  touched_at   timestamptz not null,
  created_at   timestamptz not null default now(),
  primary key (app_id, device_id, affiliate_id, touched_at),
  foreign key (app_id, device_id) references attributions (app_id, device_id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, click_id) references clicks (app_id, id)
);

-- Every pair of device and user that identify reported, also for a device whose install comes later. Device ids come from
-- callers with a public key, so the position limits how many users one device can claim.
create table identities (
  app_id           app_id not null references apps (id),
  device_id        text not null check (length(device_id) between 1 and 200),
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  position         smallint not null constraint at_most_10_users_of_a_device check (position between 1 and 10),
  identified_at    timestamptz not null,
  -- The caller's address, hashed with the key of its day. Only for the diagnostic of addresses with many users.
  address_hash     bytea check (length(address_hash) = 32),
  created_at       timestamptz not null default now(),
  -- When retention found the device attributed and kept the row. It deletes the rows of devices without an attribution.
  retained_at      timestamptz,
  primary key (app_id, device_id, customer_user_id),
  constraint identities_one_position unique (app_id, device_id, position)
);
create index identities_by_user on identities (app_id, customer_user_id);
-- Finds user ids that differ only in the case of A to Z or in surrounding spaces.
create index identities_by_normalized_user on identities (app_id, (lower(btrim(customer_user_id) collate "C")));
-- The diagnostic of user ids reads the latest identities first.
create index identities_by_created on identities (app_id, created_at desc);

create index identities_to_examine on identities (created_at) where retained_at is null;

-- Ties a user to the attribution of a device. The first binding of a user stays.
create table bindings (
  id               binding_id primary key,
  app_id           app_id not null,
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  attribution_id   attribution_id not null,
  identified_at    timestamptz not null,
  created_at       timestamptz not null default now(),
  -- Time of the user's first attributed payment. Set once.
  first_paid_at    timestamptz,
  -- Null until the payments that came before the binding have been evaluated again.
  healed_at        timestamptz,
  relayed_at       timestamptz,
  unique (app_id, customer_user_id),
  unique (app_id, id),
  foreign key (app_id, attribution_id) references attributions (app_id, id)
);
create index bindings_to_heal on bindings ((coalesce(relayed_at, created_at))) where healed_at is null;

create function forbid_binding_change() returns trigger language plpgsql as $$
begin
  raise exception 'the binding of a user cannot be changed' using errcode = 'integrity_constraint_violation';
end $$;
create trigger bindings_immutable before update on bindings for each row
  when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
        or (old.first_paid_at is not null and old.first_paid_at is distinct from new.first_paid_at))
  execute function forbid_binding_change();

---------------------------------------------------------------------------------------------------------------------
-- Test keys

-- What SDKs with a test key report has tables of its own. Bindings, payments and commissions cannot reference them, and no sum
-- reads them: so a test attribution can neither count nor earn, and the first attribution by a live key is not affected.
create table test_attributions (
  id            attribution_id primary key,
  app_id        app_id not null references apps (id),
  device_id     text not null check (length(device_id) between 1 and 200),
  affiliate_id  affiliate_id not null,
  link_id       link_id,
  -- The click keeps no trace of it: a live install can still claim it.
  click_id      click_id,
  match_method  text not null check (match_method in ('claim_token', 'code', 'deferred')),
  touched_at    timestamptz not null,
  first_open_at timestamptz not null,
  sdk           text check (sdk ~ '^[a-z-]{1,20}/[0-9A-Za-z.+-]{1,30}$'),
  created_at    timestamptz not null default now(),
  unique (app_id, device_id),
  unique (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, click_id) references clicks (app_id, id)
);
create index test_attributions_by_created on test_attributions (created_at);

create table test_identities (
  app_id           app_id not null references apps (id),
  device_id        text not null check (length(device_id) between 1 and 200),
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  position         smallint not null constraint at_most_10_test_users_of_a_device check (position between 1 and 10),
  identified_at    timestamptz not null,
  created_at       timestamptz not null default now(),
  primary key (app_id, device_id, customer_user_id),
  constraint test_identities_one_position unique (app_id, device_id, position)
);
create index test_identities_by_user on test_identities (app_id, customer_user_id, created_at);
create index test_identities_by_app on test_identities (app_id, created_at desc);
create index test_identities_by_created on test_identities (created_at);
