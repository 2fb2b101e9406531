-- The whole first schema. Read top to bottom: who owns what, how a user came, what was paid, what is owed, what was
-- handed out. Each rule that moves money is a constraint here and a function in src/domain; docs/money.md explains both.

-- One domain per id prefix: an id of one kind can't be stored as another.
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
create domain rate_bps      as integer check (value between 0 and 10000);
-- Whole cents that a JavaScript number holds exactly.
create domain cents         as bigint check (value between -9007199254740991 and 9007199254740991);
create domain environment   as text collate "C" check (value in ('production', 'sandbox'));
-- Instants inside JSON: whole milliseconds since 1970, as everywhere outside the database.
create function epoch_ms(at timestamptz) returns bigint language sql immutable parallel safe as $$
  select floor(extract(epoch from at) * 1000)::bigint
$$;
create domain provider      as text collate "C" check (value in ('revenuecat', 'adapty', 'superwall', 'stripe', 'paddle'));

---------------------------------------------------------------------------------------------------------------------
-- Tenants, keys, secrets

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
  permissions text[] not null check (permissions <@ array['read', 'write', 'setup', 'payout'] and cardinality(permissions) > 0),
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
  link_subdomain          text collate "C" not null unique
                          check (link_subdomain ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  created_at              timestamptz not null default now()
);
create index apps_by_account on apps (account_id, created_at, id);

create table sdk_keys (
  id         key_id primary key,
  app_id     app_id not null references apps (id),
  key_sha256 bytea not null unique check (length(key_sha256) = 32),
  display    text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz
);
create unique index sdk_keys_one_current on sdk_keys (app_id) where expires_at is null;

create table webhook_secrets (
  id            secret_id primary key,
  app_id        app_id not null references apps (id),
  provider      provider not null,
  environment   environment not null,
  -- AES-256-GCM: nonce, ciphertext and tag together; encryption_key_id names the key that opens it.
  ciphertext    bytea not null,
  encryption_key_id text not null,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  unique (app_id, id)
);
create unique index webhook_secrets_one_current on webhook_secrets (app_id, provider) where expires_at is null;
create index webhook_secrets_by_app on webhook_secrets (app_id, provider, created_at);

---------------------------------------------------------------------------------------------------------------------
-- Creators, links, clicks

create table affiliates (
  id         affiliate_id primary key,
  app_id     app_id not null references apps (id),
  name       text not null check (length(name) between 1 and 200),
  email      text,
  status     text not null default 'active' check (status in ('active', 'paused', 'removed')),
  default_commission_rate_bps rate_bps,
  created_at timestamptz not null default now(),
  unique (app_id, id)
);
create index affiliates_by_created on affiliates (app_id, created_at, id);
create index affiliates_by_status_created on affiliates (app_id, status, created_at, id);
create index affiliates_by_name on affiliates (app_id, lower(name) collate "C", id);
create index affiliates_by_status_name on affiliates (app_id, status, lower(name) collate "C", id);

create table links (
  id              link_id primary key,
  app_id          app_id not null references apps (id),
  affiliate_id    affiliate_id not null,
  slug            text not null check (slug ~ '^[A-Za-z0-9_-]{2,64}$'),
  destination_url text not null,
  campaign        text,
  active          boolean not null default true,
  created_at      timestamptz not null default now(),
  unique (app_id, id),
  unique (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create unique index links_slug on links (app_id, lower(slug) collate "C");
create index links_by_created on links (app_id, created_at, id);
create index links_by_affiliate on links (app_id, affiliate_id, created_at, id);
create index links_by_active on links (app_id, active, created_at, id);
create index links_by_affiliate_active on links (app_id, affiliate_id, active, created_at, id);

create function forbid_slug_change() returns trigger language plpgsql as $$
begin
  raise exception 'a link''s slug never changes' using errcode = 'integrity_constraint_violation';
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
  -- The first device that redeems the token owns it for good.
  claimed_by_device text,
  unique (app_id, claim_token),
  unique (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id)
);

---------------------------------------------------------------------------------------------------------------------
-- From device to user

create table attributions (
  id            attribution_id primary key,
  app_id        app_id not null references apps (id),
  device_id     text not null check (length(device_id) between 1 and 200),
  affiliate_id  affiliate_id not null,
  link_id       link_id,
  click_id      click_id,
  match_method  text not null check (match_method in ('claim_token', 'code', 'deferred')),
  -- The touch that won: the click, or the install itself for a code.
  touched_at    timestamptz not null,
  first_open_at timestamptz not null,
  created_at    timestamptz not null default now(),
  unique (app_id, device_id),
  unique (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, click_id) references clicks (app_id, id)
);

-- Touches that came after a device had its attribution: kept for the explanation of a decision, worth nothing.
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

-- Every pair that identify ever told of, also for a device whose install comes later.
create table identities (
  app_id           app_id not null references apps (id),
  device_id        text not null check (length(device_id) between 1 and 200),
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  identified_at    timestamptz not null,
  created_at       timestamptz not null default now(),
  primary key (app_id, device_id, customer_user_id)
);
create index identities_by_user on identities (app_id, customer_user_id);

create table bindings (
  id               binding_id primary key,
  app_id           app_id not null,
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  attribution_id   attribution_id not null,
  identified_at    timestamptz not null,
  created_at       timestamptz not null default now(),
  -- When the first attributed payment of this user was made; set once.
  first_paid_at    timestamptz,
  -- Null until payments that came before the binding were looked at again.
  healed_at        timestamptz,
  relayed_at       timestamptz,
  unique (app_id, customer_user_id),
  unique (app_id, id),
  foreign key (app_id, attribution_id) references attributions (app_id, id)
);
create index bindings_to_heal on bindings ((coalesce(relayed_at, created_at))) where healed_at is null;

create function forbid_binding_move() returns trigger language plpgsql as $$
begin
  raise exception 'a user id stays with its first attribution' using errcode = 'integrity_constraint_violation';
end $$;
create trigger bindings_never_move before update on bindings for each row
  when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
        or (old.first_paid_at is not null and old.first_paid_at is distinct from new.first_paid_at))
  execute function forbid_binding_move();

---------------------------------------------------------------------------------------------------------------------
-- Deliveries: the inbox

create table deliveries (
  id                delivery_id primary key,
  app_id            app_id not null references apps (id),
  provider          provider not null,
  received_at       timestamptz not null,
  signature_valid   boolean not null,
  processing_status text not null check (processing_status in
                    ('received', 'processing', 'processed', 'duplicate', 'ignored', 'failed', 'rejected')),
  secret_id         secret_id,
  -- What proves the request without the secret itself: signature headers, or a keyed hash of a static token.
  proof             jsonb,
  body_sha256       bytea not null check (length(body_sha256) = 32),
  -- Allotted with the row, so that even an unfinished delivery can be answered with it.
  event_id          event_id not null unique,
  source_event_id   text,
  event_count       integer not null default 0 check (event_count in (0, 1)),
  commission_id     commission_id,
  last_error        text,
  completed_at      timestamptz,
  relayed_at        timestamptz,
  -- A flood of refused requests is counted in one row per app, provider and hour.
  refused_count     integer not null default 0,
  refused_hour      timestamptz,
  unique (app_id, id),
  foreign key (app_id, secret_id) references webhook_secrets (app_id, id),
  check ((processing_status = 'rejected') = (not signature_valid)),
  check (signature_valid = (secret_id is not null)),
  check ((completed_at is null) = (processing_status in ('received', 'processing'))),
  check ((processing_status = 'rejected') = (refused_hour is not null))
);
create unique index deliveries_refused on deliveries (app_id, provider, refused_hour) where refused_hour is not null;
create index deliveries_by_received on deliveries (app_id, received_at desc, id desc);
create index deliveries_latest on deliveries (app_id, provider, received_at desc);
create index deliveries_unfinished on deliveries ((coalesce(relayed_at, received_at))) where completed_at is null;

create table delivery_bodies (
  delivery_id delivery_id primary key references deliveries (id),
  body        bytea not null
);

---------------------------------------------------------------------------------------------------------------------
-- Facts that providers told

create table events (
  id               event_id primary key,
  app_id           app_id not null,
  delivery_id      delivery_id not null unique,
  source           provider not null,
  source_event_id  text not null check (length(source_event_id) between 1 and 500),
  kind             text not null check (kind in ('purchase', 'renewal', 'trial_started', 'trial_converted', 'product_change',
                   'cancellation', 'expiration', 'refund', 'refund_reversed', 'chargeback', 'chargeback_reversed',
                   'transfer', 'test', 'other')),
  environment      environment not null,
  occurred_at      timestamptz not null,
  received_at      timestamptz not null,
  product_id       text,
  customer_user_id text,
  store            text,
  payment_ref      text,
  currency         text check (currency ~ '^[A-Z]{3}$'),
  amount_minor     bigint,
  -- USD cents; frozen when the payment is first evaluated, with the rate that gave it.
  amount_cents     cents,
  fx_rate          numeric check (fx_rate > 0),
  fx_source        text,
  -- Why a paid event earned nothing; null when it earned, or when it is not about money in.
  likely_cause     text check (likely_cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified',
                   'user_id_mismatch', 'user_not_attributed', 'outside_attribution_window', 'affiliate_paused',
                   'affiliate_removed', 'rate_zero', 'missing_exchange_rate', 'price_unknown', 'processing')),
  created_at       timestamptz not null default now(),
  unique (app_id, source, source_event_id),
  unique (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id)
);
create index events_unattributed on events (app_id, occurred_at desc, id desc) where likely_cause is not null;

-- One row per payment at the store, whoever reports it and however often: money is counted here, not per event.
create table payments (
  id               payment_id primary key,
  app_id           app_id not null,
  environment      environment not null,
  store            text not null,
  ref              text not null,
  event_id         event_id not null,
  currency         text not null check (currency ~ '^[A-Z]{3}$'),
  amount_minor     bigint not null check (amount_minor > 0),
  usd_cents        cents check (usd_cents > 0),
  occurred_at      timestamptz not null,
  only_anonymous_user boolean not null,
  -- Goes up with each evaluation and each new fact told through the same row: two evaluations can't both append.
  version          bigint not null default 0,
  evaluated_at     timestamptz,
  likely_cause     text,
  base_cents       cents check (base_cents >= 0),
  binding_id       binding_id,
  earned_cents     cents not null default 0 check (earned_cents >= 0),
  reversed_cents   cents not null default 0,
  unique (app_id, environment, store, ref),
  unique (app_id, id, environment),
  foreign key (app_id, event_id) references events (app_id, id),
  foreign key (app_id, binding_id) references bindings (app_id, id),
  constraint never_more_reversed_than_earned check (reversed_cents between 0 and earned_cents)
);

-- Who may have paid: the ids of every event that tells of the payment, best first.
create table payment_users (
  app_id           app_id not null,
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  payment_id       payment_id not null,
  environment      environment not null,
  position         integer not null,
  primary key (app_id, customer_user_id, payment_id),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment)
);
create index payment_users_by_payment on payment_users (payment_id);

-- A provider's keys (subscription, customer) by which a payment may find its user later.
create table payment_user_keys (
  app_id     app_id not null,
  source     provider not null,
  user_key   text not null,
  payment_id payment_id not null,
  environment environment not null,
  position   integer not null,
  primary key (app_id, user_key, payment_id, source),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment)
);
create index payment_user_keys_by_payment on payment_user_keys (payment_id);

create table user_links (
  app_id           app_id not null references apps (id),
  environment      environment not null,
  source           provider not null,
  user_key         text not null,
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  primary key (app_id, environment, source, user_key)
);
create index user_links_by_user on user_links (app_id, customer_user_id);

create table payment_aliases (
  app_id      app_id not null references apps (id),
  environment environment not null,
  store       text not null,
  alias_ref   text not null,
  payment_ref text not null,
  primary key (app_id, environment, store, alias_ref)
);
create index payment_aliases_by_payment on payment_aliases (app_id, environment, store, payment_ref);

-- One row per refund or dispute: its latest state. It may be here before the payment is.
create table adjustments (
  id           adjustment_id primary key,
  app_id       app_id not null,
  environment  environment not null,
  store        text not null,
  ref          text not null,
  payment_ref  text not null,
  kind         text not null check (kind in ('refund', 'chargeback')),
  state        text not null check (state in ('applied', 'reversed')),
  rank         integer not null,
  reverses_all boolean not null,
  currency     text not null check (currency ~ '^[A-Z]{3}$'),
  amount_minor bigint not null check (amount_minor >= 0),
  usd_cents    cents check (usd_cents >= 0),
  occurred_at  timestamptz not null,
  event_id     event_id not null,
  -- The part that the ledger already holds, in minor units of the payment's currency.
  booked_minor bigint not null default 0 check (booked_minor >= 0),
  unique (app_id, environment, store, ref),
  unique (app_id, id),
  foreign key (app_id, event_id) references events (app_id, id)
);
create index adjustments_by_payment on adjustments (app_id, environment, store, payment_ref);

create table exchange_rates (
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  day      date not null,
  usd_rate numeric not null check (usd_rate > 0),
  source   text not null,
  primary key (currency, day)
);

---------------------------------------------------------------------------------------------------------------------
-- The ledger

create table payouts (
  id             payout_id primary key,
  app_id         app_id not null,
  affiliate_id   affiliate_id not null,
  affiliate_name text not null,
  item_count     integer not null check (item_count > 0),
  total_cents    cents not null check (total_cents > 0),
  created_at     timestamptz not null default now(),
  csv_sha256     bytea check (length(csv_sha256) = 32),
  unique (app_id, id),
  unique (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create index payouts_by_created on payouts (app_id, created_at desc, id desc);
create index payouts_by_affiliate on payouts (app_id, affiliate_id, created_at desc, id desc);

create table commissions (
  id               commission_id primary key,
  app_id           app_id not null,
  affiliate_id     affiliate_id not null,
  link_id          link_id,
  event_id         event_id not null,
  payment_id       payment_id not null,
  -- Always production: the foreign key below makes sandbox money impossible.
  environment      environment not null default 'production' check (environment = 'production'),
  binding_id       binding_id not null,
  adjustment_id    adjustment_id,
  kind             text not null check (kind in ('earning', 'reversal')),
  reverses_commission_id commission_id,
  status           text not null default 'pending' check (status in ('pending', 'matured', 'paid')),
  rate_bps         rate_bps not null check (rate_bps > 0),
  base_cents       cents not null,
  amount_cents     cents not null check (amount_cents <> 0),
  source           provider not null,
  customer_user_id text not null,
  match_method     text not null,
  occurred_at      timestamptz not null,
  due_at           timestamptz not null,
  matured_at       timestamptz,
  paid_at          timestamptz,
  payout_id        payout_id,
  created_at       timestamptz not null default now(),
  unique (app_id, id),
  unique (app_id, affiliate_id, id, amount_cents),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, event_id) references events (app_id, id),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment),
  foreign key (app_id, binding_id) references bindings (app_id, id),
  foreign key (app_id, adjustment_id) references adjustments (app_id, id),
  foreign key (app_id, reverses_commission_id) references commissions (app_id, id),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  constraint an_earning_is_positive check (kind = 'reversal' or amount_cents > 0),
  constraint a_reversal_names_its_earning check
    ((kind = 'reversal') = (reverses_commission_id is not null) and (kind = 'reversal') = (adjustment_id is not null)),
  constraint paid_means_in_a_payout check
    ((status = 'paid') = (payout_id is not null) and (status = 'paid') = (paid_at is not null)),
  constraint matured_has_its_time check ((status = 'pending') = (matured_at is null))
);
create unique index one_earning_per_payment on commissions (payment_id) where kind = 'earning';
create unique index one_earning_per_event on commissions (event_id) where kind = 'earning';
create index commissions_by_payment on commissions (payment_id);
create index commissions_by_event on commissions (event_id);
create index commissions_by_occurred on commissions (app_id, occurred_at desc, id desc);
create index commissions_by_affiliate on commissions (app_id, affiliate_id, occurred_at desc, id desc);
create index commissions_by_status on commissions (app_id, status, occurred_at desc, id desc);
create index commissions_by_affiliate_status on commissions (app_id, affiliate_id, status, occurred_at desc, id desc);
-- What an export may pay, what a preview adds, what the sweep matures.
create index commissions_unpaid on commissions (app_id, affiliate_id, due_at) where status <> 'paid';
create index commissions_pending_by_app on commissions (app_id, due_at) where status = 'pending';
create index commissions_pending on commissions (due_at) where status = 'pending';
create index commissions_next_due on commissions (app_id, affiliate_id, due_at) where status <> 'paid' and amount_cents > 0;

create table payout_items (
  payout_id     payout_id not null,
  commission_id commission_id primary key,
  app_id        app_id not null,
  affiliate_id  affiliate_id not null,
  amount_cents  cents not null,
  position      integer not null check (position > 0),
  unique (payout_id, position),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id, commission_id, amount_cents)
    references commissions (app_id, affiliate_id, id, amount_cents)
);

-- An authorised call writes a request; the payout workflow learns its id and nothing else.
create table payout_requests (
  id              payout_request_id primary key,
  app_id          app_id not null,
  affiliate_id    affiliate_id not null,
  account_id      account_id not null references accounts (id),
  key_id          key_id not null references account_keys (id),
  idempotency_key text check (length(idempotency_key) between 1 and 255),
  expected_total_cents cents,
  -- open → paid | empty (nothing due) | total_changed | closed (the caller gave up before it was handled)
  status          text not null default 'open' check (status in ('open', 'paid', 'empty', 'total_changed', 'closed')),
  payout_id       payout_id,
  net_cents       cents,
  created_at      timestamptz not null default now(),
  -- Nothing is paid for a request after this: whoever asked has been told by then that it was not.
  expires_at      timestamptz not null,
  settled_at      timestamptz,
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  check ((status = 'open') = (settled_at is null)),
  check ((status = 'paid') = (payout_id is not null))
);
create unique index payout_requests_idempotency on payout_requests (account_id, idempotency_key)
  where idempotency_key is not null;
create unique index payout_requests_payout on payout_requests (payout_id) where payout_id is not null;
create index payout_requests_open on payout_requests (expires_at) where status = 'open';

-- Attributed revenue, signed like the ledger: one row when a payment is attributed, opposite rows for money that went back.
create table revenue_entries (
  payment_id    payment_id not null,
  position      integer not null,
  app_id        app_id not null,
  environment   environment not null default 'production' check (environment = 'production'),
  affiliate_id  affiliate_id not null,
  link_id       link_id,
  adjustment_id adjustment_id,
  amount_cents  cents not null check (amount_cents <> 0),
  occurred_at   timestamptz not null,
  primary key (payment_id, position),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, adjustment_id) references adjustments (app_id, id)
);

---------------------------------------------------------------------------------------------------------------------
-- Rules of the ledger that a single row can't state

-- What a commission says is fixed when it is written; only its way to `paid` moves on, and never back.
create function guard_commission_update() returns trigger language plpgsql as $$
begin
  if old.status = 'paid' then
    raise exception 'commission % is paid: that is never undone', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'matured' and new.status = 'pending' then
    raise exception 'commission % has matured: it does not go back', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if to_jsonb(old) - array['status', 'matured_at', 'paid_at', 'payout_id']
     is distinct from to_jsonb(new) - array['status', 'matured_at', 'paid_at', 'payout_id'] then
    raise exception 'commission % is never edited: append a reversal', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger commissions_guard before update on commissions for each row execute function guard_commission_update();

create function guard_commission_insert() returns trigger language plpgsql as $$
begin
  raise exception 'a commission begins as pending' using errcode = 'integrity_constraint_violation';
end $$;
create trigger commissions_begin_pending before insert on commissions
  for each row when (new.status <> 'pending') execute function guard_commission_insert();

create function forbid_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are never changed or removed', tg_table_name using errcode = 'integrity_constraint_violation';
end $$;
create trigger commissions_stay before delete or truncate on commissions for each statement execute function forbid_change();
create trigger payout_items_stay before update or delete or truncate on payout_items
  for each statement execute function forbid_change();
create trigger payouts_stay before delete or truncate on payouts for each statement execute function forbid_change();
create trigger revenue_entries_stay before update or delete or truncate on revenue_entries
  for each statement execute function forbid_change();

create function guard_payout_update() returns trigger language plpgsql as $$
begin
  if (old.csv_sha256 is not null and old.csv_sha256 is distinct from new.csv_sha256)
     or (old.id, old.app_id, old.affiliate_id, old.affiliate_name, old.item_count, old.total_cents, old.created_at)
        is distinct from
        (new.id, new.app_id, new.affiliate_id, new.affiliate_name, new.item_count, new.total_cents, new.created_at) then
    raise exception 'payout % is never edited', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payouts_guard before update on payouts for each row execute function guard_payout_update();

-- A payout is the sum of its items: checked at commit, whoever wrote it.
create function check_payout_sum() returns trigger language plpgsql as $$
declare
  total bigint;
  items integer;
begin
  select coalesce(sum(i.amount_cents), 0), count(*) into total, items
    from payout_items i join commissions c on c.id = i.commission_id and c.payout_id = i.payout_id
   where i.payout_id = new.id;
  if total <> new.total_cents or items <> new.item_count then
    raise exception 'payout % says % cents in % items, its paid items say % in %', new.id, new.total_cents, new.item_count, total, items
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger payouts_sum after insert on payouts deferrable initially deferred
  for each row execute function check_payout_sum();

-- Items come with their payout, in its transaction, and never later.
create function check_items_come_with_payout() returns trigger language plpgsql as $$
begin
  if exists (select from added i join payouts p on p.id = i.payout_id where p.created_at <> now()) then
    raise exception 'a payout gets no items after it was made' using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create trigger payout_items_come_with_payout after insert on payout_items referencing new table as added
  for each statement execute function check_items_come_with_payout();

-- A paid commission is an item of the payout that it names: checked at commit.
create function check_paid_has_item() returns trigger language plpgsql as $$
begin
  if exists (
    select from commissions_after c
     where c.status = 'paid'
       and not exists (select from payout_items i where i.commission_id = c.id and i.payout_id = c.payout_id)
  ) then
    raise exception 'a commission was marked paid without being an item of its payout' using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create trigger commissions_paid_has_item after update on commissions
  referencing new table as commissions_after for each statement execute function check_paid_has_item();

-- Earned and reversed sums live on the payment, where a check constraint compares them.
create function add_to_payment() returns trigger language plpgsql as $$
begin
  update payments p
     set earned_cents = p.earned_cents + case when new.kind = 'earning' then new.amount_cents else 0 end,
         reversed_cents = p.reversed_cents - case when new.kind = 'reversal' then new.amount_cents else 0 end
   where p.id = new.payment_id;
  return null;
end $$;
create trigger commissions_add_to_payment after insert on commissions for each row execute function add_to_payment();

-- Nobody but the trigger above changes these sums.
create function guard_payment_sums() returns trigger language plpgsql as $$
begin
  if pg_trigger_depth() < 2 then
    raise exception 'the sums of payment % follow its commissions', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payments_guard_sums before update on payments for each row
  when (old.earned_cents <> new.earned_cents or old.reversed_cents <> new.reversed_cents)
  execute function guard_payment_sums();

-- A reversal follows its earning: same payment, creator, rate and due date, so that both net in one payout.
create function check_reversal() returns trigger language plpgsql as $$
begin
  if not exists (
    select from commissions e
     where e.id = new.reverses_commission_id and e.kind = 'earning' and e.payment_id = new.payment_id
       and e.affiliate_id = new.affiliate_id and e.rate_bps = new.rate_bps and e.due_at = new.due_at
  ) then
    raise exception 'reversal % does not follow its earning', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger commissions_check_reversal after insert on commissions
  for each row when (new.kind = 'reversal') execute function check_reversal();
