-- What billing providers report: deliveries, events, payments, refunds and disputes, exchange rates.

---------------------------------------------------------------------------------------------------------------------
-- Deliveries: the inbox of webhooks

create table deliveries (
  id                delivery_id primary key,
  app_id            app_id not null references apps (id),
  provider          provider not null,
  received_at       timestamptz not null,
  signature_valid   boolean not null,
  processing_status text not null check (processing_status in
                    ('received', 'processing', 'processed', 'duplicate', 'ignored', 'failed', 'rejected')),
  secret_id         secret_id,
  -- Proves the request without storing the secret: signature headers, or a keyed hash of a static token.
  proof             jsonb,
  body_sha256       bytea not null check (length(body_sha256) = 32),
  -- Assigned with the row, so that the response to an unfinished delivery can contain it.
  event_id          event_id not null unique,
  source_event_id   text,
  event_count       integer not null default 0 check (event_count in (0, 1)),
  commission_id     commission_id,
  last_error        text,
  completed_at      timestamptz,
  relayed_at        timestamptz,
  -- Refused requests are counted in one row per app, provider and hour, so that a flood of them stays small.
  refused_count     integer not null default 0,
  refused_hour      timestamptz,
  -- Whether the service sent the delivery to itself. A trigger sets it.
  is_self_test      boolean not null default false,
  unique (app_id, id),
  foreign key (app_id, secret_id) references webhook_secrets (app_id, id),
  check ((processing_status = 'rejected') = (not signature_valid)),
  check (signature_valid = (secret_id is not null)),
  check ((completed_at is null) = (processing_status in ('received', 'processing'))),
  check ((processing_status = 'rejected') = (refused_hour is not null))
);
create unique index deliveries_refused on deliveries (app_id, provider, refused_hour) where refused_hour is not null;
create index deliveries_refused_by_age on deliveries (refused_hour) where refused_hour is not null;
create index deliveries_by_received on deliveries (app_id, received_at desc, id desc);
-- Most deliveries are processed, so this index is small.
create index deliveries_by_status on deliveries (app_id, processing_status, received_at desc, id desc)
  where processing_status <> 'processed';
-- The latest delivery that the provider itself sent. Refused ones have deliveries_refused.
create index deliveries_latest_accepted on deliveries (app_id, provider, received_at desc)
  where signature_valid and not is_self_test;
create index deliveries_unfinished on deliveries ((coalesce(relayed_at, received_at))) where completed_at is null;

create table delivery_bodies (
  delivery_id delivery_id primary key references deliveries (id),
  body        bytea not null
);

---------------------------------------------------------------------------------------------------------------------
-- Self-tests
-- Requests that the service sends to itself. They are recognized by their bytes and can never become money.

-- Each request of a self-test is announced here before it is sent. Its body has a random part, so no other body has this
-- hash. Rows are never deleted: a copy of the request that is delivered much later is still recognized.
create table self_test_requests (
  app_id       app_id not null references apps (id),
  provider     provider not null,
  body_sha256  bytea not null check (length(body_sha256) = 32),
  announced_at timestamptz not null default now(),
  -- When the request arrived and its proof was refused. Such a request is not counted in deliveries: it was no attack.
  refused_at   timestamptz,
  primary key (app_id, provider, body_sha256)
);

-- The bytes of a delivery decide whether it is of a self-test, whichever code inserts it.
create function mark_self_test() returns trigger language plpgsql as $$
begin
  new.is_self_test := exists (
    select from self_test_requests s
     where s.app_id = new.app_id and s.provider = new.provider and s.body_sha256 = new.body_sha256);
  return new;
end $$;
create trigger deliveries_mark_self_test before insert on deliveries for each row
  when (new.signature_valid) execute function mark_self_test();

create function forbid_self_test_change() returns trigger language plpgsql as $$
begin
  raise exception 'delivery %: whether it is of a self-test was decided when it arrived', old.id
    using errcode = 'integrity_constraint_violation';
end $$;
create trigger deliveries_self_test_immutable before update of is_self_test on deliveries for each row
  when (old.is_self_test <> new.is_self_test) execute function forbid_self_test_change();
create trigger self_test_requests_no_delete before delete or truncate on self_test_requests
  for each statement execute function forbid_change();

---------------------------------------------------------------------------------------------------------------------
-- Events, payments, refunds and disputes: facts

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
  -- US cents, frozen with its exchange rate by the first evaluation that attributes the payment.
  amount_cents     cents,
  -- amount_cents follows from amount_minor, fx_units and fx_worth_usd. fx_rate is their rounded quotient, for display.
  fx_rate          numeric check (fx_rate > 0),
  fx_units         numeric check (fx_units > 0),
  fx_worth_usd     numeric check (fx_worth_usd > 0),
  fx_source        text,
  -- Why a paid event earned no commission. Null when it earned one, and for events that are no payment.
  likely_cause     text check (likely_cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified',
                   'user_id_mismatch', 'user_not_attributed', 'outside_attribution_window', 'affiliate_paused',
                   'affiliate_removed', 'rate_zero', 'missing_exchange_rate', 'price_unknown', 'processing',
                   'test_key_only')),
  created_at       timestamptz not null default now(),
  unique (app_id, source, source_event_id),
  unique (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  constraint fx_rate_is_complete
    check ((fx_rate is null) = (fx_units is null) and (fx_rate is null) = (fx_worth_usd is null))
);
create index events_unattributed on events (app_id, occurred_at desc, id desc) where likely_cause is not null;
create index events_unattributed_by_user on events (app_id, customer_user_id, occurred_at desc, id desc)
  where likely_cause is not null and customer_user_id is not null;
-- The diagnostic of user ids reads the latest events first.
create index events_with_user on events (app_id, id desc) where customer_user_id is not null and kind <> 'test';

-- One row per payment at the store, whichever providers report it and how often: money is counted here, not per event.
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
  -- Incremented by each evaluation and each further event of the payment, so that two evaluations cannot both append.
  version          bigint not null default 0,
  evaluated_at     timestamptz,
  likely_cause     text,
  base_cents       cents check (base_cents >= 0),
  binding_id       binding_id,
  earned_cents     cents not null default 0 check (earned_cents >= 0),
  reversed_cents   cents not null default 0,
  -- The part of earned_cents that a correction takes back.
  corrected_cents  cents not null default 0 check (corrected_cents >= 0),
  -- The row that counts, if this one was attributed too before an alias showed that both are one payment. It never changes.
  duplicate_of     payment_id check (duplicate_of <> id),
  -- Since when an evaluation has to follow: after a new alias ties this row to another attributed row, after a new link may
  -- name its user, or because the last one failed. Every evaluation clears it.
  recheck_since    timestamptz,
  unique (app_id, environment, store, ref),
  unique (app_id, id, environment),
  foreign key (app_id, event_id) references events (app_id, id),
  foreign key (app_id, binding_id) references bindings (app_id, id),
  foreign key (app_id, duplicate_of, environment) references payments (app_id, id, environment),
  constraint never_more_reversed_than_earned check (reversed_cents >= 0 and reversed_cents + corrected_cents <= earned_cents)
);
create index payments_to_recheck on payments (recheck_since) where recheck_since is not null;
-- Payments without an exchange rate, by the rate that they wait for. `src/db/rates.ts` walks days, not payments.
create index payments_waiting_for_rate on payments (currency, ((occurred_at at time zone 'UTC')::date), id)
  where likely_cause = 'missing_exchange_rate';

-- The users who may have paid: the user ids of every event of the payment, the most reliable first.
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

-- Keys of a provider (subscription, customer) through which a payment may find its user later.
create table payment_user_keys (
  app_id     app_id not null,
  source     provider not null,
  user_key   text not null,
  payment_id payment_id not null,
  environment environment not null,
  position   integer not null,
  added_at   timestamptz not null default now(),
  primary key (app_id, user_key, payment_id, source),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment)
);
create index payment_user_keys_by_payment on payment_user_keys (payment_id);

-- Which user a provider's key belongs to.
create table user_links (
  app_id           app_id not null references apps (id),
  environment      environment not null,
  source           provider not null,
  user_key         text not null,
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  linked_at        timestamptz not null default now(),
  primary key (app_id, environment, source, user_key)
);
create index user_links_by_user on user_links (app_id, customer_user_id);

-- Another reference of the same payment, e.g. the payment intent of a Stripe invoice.
create table payment_aliases (
  app_id      app_id not null references apps (id),
  environment environment not null,
  store       text not null,
  alias_ref   text not null,
  payment_ref text not null,
  primary key (app_id, environment, store, alias_ref, payment_ref)
);
create index payment_aliases_by_payment on payment_aliases (app_id, environment, store, payment_ref);

-- Returns all references of the payments that `refs` name, over any number of aliases, in both directions. Every statement
-- that asks whether two references are the same payment asks this function. Its parameters would otherwise have the collation of
-- the ids, which no index on references has.
create function same_payment_refs(of_app app_id, of_environment environment, of_store text, refs text[])
returns table (ref text) language sql stable parallel safe rows 3 as $$
  with recursive names (ref) as (
    select unnest(refs) collate "default"
    union
    select other.ref
      from names n
     cross join lateral (
       select l.payment_ref from payment_aliases l
        where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default" and l.alias_ref = n.ref collate "default"
       union all
       select l.alias_ref from payment_aliases l
        where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default" and l.payment_ref = n.ref collate "default"
     ) other (ref))
  select names.ref from names
$$;

-- Returns the rows of the payments that `refs` name. `offset 0` keeps the planner at one look-up per reference.
create function same_payment(of_app app_id, of_environment environment, of_store text, refs text[])
returns setof payments language sql stable parallel safe rows 2 as $$
  select p.*
    from same_payment_refs(of_app, of_environment, of_store, refs) n
   cross join lateral (
     select x.* from payments x
      where x.app_id = of_app and x.environment = of_environment and x.store = of_store collate "default"
        and x.ref = n.ref collate "default" offset 0) p
$$;

-- An alias may show that two attributed rows are one payment. Its event's evaluation takes one of them back. The mark makes
-- the relay do so if that evaluation never ran. An evaluation that has not seen the alias must not clear the mark, so the
-- version rises too.
create function mark_for_recheck() returns trigger language plpgsql as $$
begin
  update payments p set recheck_since = now(), version = p.version + 1
   where p.id = any(array(
     select q.id
       from payments q
      where q.id = any(array(
        select unnest(tied.ids)
          from added a
         cross join lateral (
           select array_agg(x.id) as ids, count(*) filter (where x.binding_id is not null and x.duplicate_of is null) as attributed
             from same_payment(a.app_id, a.environment, a.store, array[a.alias_ref]) x) tied
         where a.environment = 'production' and tied.attributed > 1))
      order by q.id for update));
  return null;
end $$;
create trigger payment_aliases_mark_for_recheck after insert on payment_aliases referencing new table as added
  for each statement execute function mark_for_recheck();

-- A new link may name the user of payments that wait, however many they are. Its event's evaluations clear the first marks,
-- the relay the others. The version rises as above.
create function mark_linked_for_recheck() returns trigger language plpgsql as $$
begin
  update payments p set recheck_since = now(), version = p.version + 1
   where p.id = any(array(
     select q.id
       from payments q
      where q.environment = 'production' and q.binding_id is null
        and q.id = any(array(
          select k.payment_id
            from added a
           cross join lateral (
             select x.payment_id from payment_user_keys x
              where x.app_id = a.app_id and x.user_key = a.user_key and x.source = a.source offset 0) k
           where a.environment = 'production'))
      order by q.id for update));
  return null;
end $$;
create trigger user_links_mark_for_recheck after insert on user_links referencing new table as added
  for each statement execute function mark_linked_for_recheck();

-- Who transferred purchases to whom. A transfer may arrive before its giver is known, and counts once the giver is known.
create table user_transfers (
  app_id           app_id not null,
  event_id         event_id not null,
  role             text collate "C" not null check (role in ('giver', 'receiver')),
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  primary key (app_id, customer_user_id, role, event_id),
  foreign key (app_id, event_id) references events (app_id, id)
);
create index user_transfers_by_event on user_transfers (event_id, role);

-- One row per refund or dispute, with its latest state. It may arrive before its payment.
create table adjustments (
  id           adjustment_id primary key,
  app_id       app_id not null,
  environment  environment not null,
  store        text not null,
  ref          text not null,
  payment_ref  text not null,
  kind         text not null check (kind in ('refund', 'chargeback', 'chargeback_warning', 'out_of_band')),
  state        text not null check (state in ('applied', 'reversed')),
  rank         integer not null,
  reverses_all boolean not null,
  currency     text not null check (currency ~ '^[A-Z]{3}$'),
  amount_minor bigint not null check (amount_minor >= 0),
  usd_cents    cents check (usd_cents >= 0),
  -- When the state began, and when it was last stated. The latter orders the states of one rank.
  occurred_at  timestamptz not null,
  stated_at    timestamptz not null check (stated_at >= occurred_at),
  event_id     event_id not null,
  -- The part that the ledger already contains, in minor units of the payment's currency.
  booked_minor bigint not null default 0 check (booked_minor >= 0),
  -- The payment whose ledger contains that part.
  booked_payment_id payment_id,
  unique (app_id, environment, store, ref),
  unique (app_id, id),
  foreign key (app_id, event_id) references events (app_id, id),
  foreign key (app_id, booked_payment_id, environment) references payments (app_id, id, environment),
  constraint booked_names_payment check (booked_minor = 0 or booked_payment_id is not null)
);
create index adjustments_by_payment on adjustments (app_id, environment, store, payment_ref);

create function forbid_duplicate_change() returns trigger language plpgsql as $$
begin
  raise exception 'payment % is a duplicate for good', old.id using errcode = 'integrity_constraint_violation';
end $$;
create trigger payments_duplicate_immutable before update of duplicate_of on payments for each row
  when (old.duplicate_of is not null and old.duplicate_of is distinct from new.duplicate_of)
  execute function forbid_duplicate_change();

-- Self-tests never become money: commissions and revenue entries reference a production payment, a production payment
-- references a production event, and a production event is not of a self-test.
create function check_self_test_is_sandbox() returns trigger language plpgsql as $$
begin
  if exists (select from deliveries d where d.id = new.delivery_id and d.is_self_test) then
    raise exception 'event % is of a self-test: its environment must be sandbox', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger events_self_test_is_sandbox before insert or update of environment, delivery_id on events for each row
  when (new.environment = 'production') execute function check_self_test_is_sandbox();

create function check_payment_environment() returns trigger language plpgsql as $$
begin
  if not exists (select from events e where e.id = new.event_id and e.environment = 'production') then
    raise exception 'payment % is of production, but its event is not', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payments_production_event before insert or update of environment, event_id on payments for each row
  when (new.environment = 'production') execute function check_payment_environment();

---------------------------------------------------------------------------------------------------------------------
-- Exchange rates

-- So many `units` of a currency are worth `worth_usd` dollars. The European Central Bank states dollars per euro and units
-- per euro. Storing their quotient would round it.
create table exchange_rates (
  currency  text not null check (currency ~ '^[A-Z]{3}$'),
  day       date not null,
  units     numeric not null check (units > 0),
  worth_usd numeric not null check (worth_usd > 0),
  source    text not null,
  primary key (currency, day)
);
