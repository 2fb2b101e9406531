-- A customer buys with a creator's code, such as a promotion code of the store: no link, no device. The code is a fact of the payment. It
-- attributes the payment if its user belongs to nobody, and then binds the user.
create domain code_id as text collate "C" check (value ~ '^cod_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- Null: codes of purchases attribute nothing.
alter table apps add column purchase_codes text collate "C" check (purchase_codes in ('when_unattributed'));
drop trigger apps_audit on apps;
create trigger apps_audit after insert or update on apps for each row execute function write_audit_row(
  'app', 'id', 'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes');

-- A code of a creator. It works from its registration until it is deactivated; then another creator can have it.
create table codes (
  id             code_id primary key,
  app_id         app_id not null,
  affiliate_id   affiliate_id not null,
  namespace      text collate "C" not null check (namespace in ('app_store', 'play_store', 'stripe', 'paddle', 'attribute', 'campaign')),
  -- What customers enter, compared without case.
  value          text not null check (char_length(value) between 1 and 64 and position('@' in value) = 0),
  -- What events of Stripe (promo_…) and Paddle (dsc_…) state instead. Compared exactly.
  external_id    text collate "C" check (char_length(external_id) between 1 and 64 and position('@' in external_id) = 0),
  created_at     timestamptz not null default now(),
  deactivated_at timestamptz check (deactivated_at >= created_at),
  unique (app_id, id),
  unique (app_id, id, affiliate_id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  constraint ids_of_stripe_and_paddle check ((external_id is not null) = (namespace in ('stripe', 'paddle')))
);
create unique index one_active_code_per_value on codes (app_id, namespace, (lower(value) collate "C")) where deactivated_at is null;
create unique index one_active_code_per_external_id on codes (app_id, namespace, external_id)
  where deactivated_at is null and external_id is not null;
create index codes_by_value on codes (app_id, namespace, (lower(value) collate "C"), created_at);
create index codes_by_external_id on codes (app_id, namespace, external_id, created_at) where external_id is not null;
create index codes_by_created on codes (app_id, created_at desc, id desc);
create index codes_by_affiliate on codes (app_id, affiliate_id, created_at desc, id desc);
create trigger codes_no_delete before delete or truncate on codes for each statement execute function forbid_change();
create trigger codes_audit after insert or update on codes for each row execute function write_audit_row(
  'code', 'id', 'affiliate_id namespace value external_id deactivated_at');

create function guard_code() returns trigger language plpgsql as $$
declare
  edited codes := new;
begin
  edited.deactivated_at := old.deactivated_at;
  if edited is not distinct from old and old.deactivated_at is null then
    return new;
  end if;
  raise exception 'code % cannot be changed: deactivate it and add another one', old.id using errcode = 'integrity_constraint_violation';
end $$;
create trigger codes_guard before update on codes for each row execute function guard_code();

-- The codes that events state of a payment, by its reference: another event may state the money.
create table payment_codes (
  app_id      app_id not null references apps (id),
  environment environment not null,
  store       text not null,
  payment_ref text not null,
  namespace   text collate "C" not null check (namespace in ('app_store', 'play_store', 'stripe', 'paddle', 'attribute', 'campaign')),
  value       text not null check (char_length(value) between 1 and 64 and position('@' in value) = 0),
  created_at  timestamptz not null default now(),
  primary key (app_id, environment, store, payment_ref, namespace, value)
);
create index payment_codes_by_created on payment_codes (app_id, created_at desc);

-- A payment that was evaluated before its code was known is evaluated again.
create function mark_payments_with_codes() returns trigger language plpgsql as $$
begin
  update payments p set recheck_since = now(), version = p.version + 1
   where p.id = any(array(
     select q.id from added a
      cross join lateral same_payment(a.app_id, a.environment, a.store, array[a.payment_ref]) q
      where q.environment = 'production' and q.binding_id is null and q.evaluated_at is not null
        and exists (select from apps x where x.id = a.app_id and x.purchase_codes is not null)));
  return null;
end $$;
create trigger payment_codes_mark_for_recheck after insert on payment_codes
  referencing new table as added for each statement execute function mark_payments_with_codes();

alter table attributions
  drop constraint attributions_match_method_check,
  add constraint attributions_match_method_check
    check (match_method in ('claim_token', 'code', 'deferred', 'manual', 'purchase_code')) not valid,
  drop constraint only_manual_ones_have_no_device,
  add constraint others_than_installs_have_no_device check
    ((device_id is null) = (match_method in ('manual', 'purchase_code'))) not valid,
  add column code_id text collate "C",
  add constraint purchase_code_has_its_code check ((code_id is not null) = (match_method = 'purchase_code')) not valid,
  add constraint attribution_has_its_code foreign key (app_id, code_id, affiliate_id)
    references codes (app_id, id, affiliate_id) not valid;

alter table events
  drop constraint events_likely_cause_check,
  add constraint events_likely_cause_check check
    (likely_cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified', 'user_id_mismatch', 'user_not_attributed',
                      'outside_attribution_window', 'affiliate_paused', 'affiliate_removed', 'rate_zero', 'missing_exchange_rate',
                      'price_unknown', 'processing', 'test_key_only', 'no_policy_rule', 'ambiguous_code')) not valid;
