-- The codes with which customers began a subscription without paying: a trial, a free month. The payments that follow come without the
-- code, and it counts for them. One row for each time that an event states.
create table subscription_codes (
  app_id      app_id not null references apps (id),
  environment environment not null,
  source      provider not null,
  user_key    text not null,
  namespace   text collate "C" not null check (namespace in ('app_store', 'play_store', 'stripe', 'paddle', 'attribute', 'campaign')),
  value       text not null check (char_length(value) between 1 and 64 and position('@' in value) = 0),
  -- When the customer used it: then it has to be in force.
  used_at     timestamptz not null,
  created_at  timestamptz not null default now(),
  primary key (app_id, user_key, source, environment, namespace, value, used_at)
);
create index subscription_codes_by_created on subscription_codes (app_id, created_at desc);

-- The codes of a payment with its rows and references, and when the customer used each.
create function codes_of_payment(p payments, row_ids text[], refs text[])
returns table (namespace text, value text, used_at timestamptz) language sql stable parallel safe as $$
  select x.namespace, x.value, p.occurred_at from unnest(refs) n (ref)
   cross join lateral (
     select * from payment_codes y
      where y.app_id = p.app_id and y.environment = p.environment and y.store = p.store
        and y.payment_ref = n.ref collate "default" offset 0) x
  union
  select x.namespace, x.value, x.used_at from unnest(row_ids) i
   cross join lateral (select * from payment_user_keys y where y.payment_id = i offset 0) k
   cross join lateral (
     select * from subscription_codes y
      where y.app_id = p.app_id and y.user_key = k.user_key and y.source = k.source and y.environment = p.environment
        and y.used_at <= p.occurred_at offset 0) x
$$;

-- As before, with the codes of the subscription, each at the time when the customer used it.
create or replace function code_owners(p payments, row_ids text[], refs text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'codeId', c.id, 'key', key_to_bind(p, row_ids, customer_key),
           'binding', jsonb_build_object(
             'boundAt', epoch_ms(now()), 'touchedAt', epoch_ms(s.used_at), 'matchMethod', 'purchase_code', 'reassignedTo', null,
             'affiliateId', f.id, 'linkId', null, 'affiliateStatus', f.status, 'affiliateRateBps', f.default_commission_rate_bps,
             'policy', case when app.policies_from <= now() then jsonb_build_object(
               'payments', 0, 'firstPaidAt', null, 'hasUnnumbered', false,
               'assigned', (
                 select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
                   from policy_in_effect(p.app_id, f.id, p.occurred_at) i)) end)) order by c.created_at, c.id, s.used_at), '[]')
    from codes_of_payment(p, row_ids, refs) s
   cross join lateral (
     -- A code works from its registration until it is deactivated. Of some namespaces events state the id.
     select * from (
         (select * from codes y
           where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id is null
             and lower(y.value) collate "C" = lower(s.value) collate "C"
             and y.created_at <= s.used_at and coalesce(y.deactivated_at > s.used_at, true) order by y.created_at limit 1)
         union all
         (select * from codes y
           where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id = s.value collate "C"
             and y.created_at <= s.used_at and coalesce(y.deactivated_at > s.used_at, true) order by y.created_at limit 1)) o
      limit 1) c
   cross join lateral (select * from apps y where y.id = p.app_id offset 0) app
   cross join lateral (select * from affiliates y where y.id = c.affiliate_id offset 0) f
   where f.status <> 'removed'
$$;

-- A payment that was evaluated before the code of its subscription was known is evaluated again.
create function mark_payments_of_subscriptions() returns trigger language plpgsql as $$
begin
  update payments p set recheck_since = now(), version = p.version + 1
   where p.id = any(array(
     select q.id from added a
      cross join lateral (
        select * from payment_user_keys y
         where y.app_id = a.app_id and y.user_key = a.user_key and y.source = a.source and y.environment = 'production' offset 0) k
      cross join lateral (select * from payments y where y.id = k.payment_id offset 0) q
      where a.environment = 'production' and q.binding_id is null and q.evaluated_at is not null and q.occurred_at >= a.used_at
        and exists (select from apps x where x.id = a.app_id and x.purchase_codes is not null)));
  return null;
end $$;
create trigger subscription_codes_mark_for_recheck after insert on subscription_codes
  referencing new table as added for each statement execute function mark_payments_of_subscriptions();
