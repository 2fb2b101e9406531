-- The codes with which customers began a subscription without paying: a trial, a free month. The payments that follow come without the
-- code, and it counts for them. One row for each use that an event states, and for each user whom the event names.
create table subscription_codes (
  app_id           app_id not null references apps (id),
  environment      environment not null,
  source           provider not null,
  user_key         text not null,
  namespace        text collate "C" not null check (namespace in ('app_store', 'play_store', 'stripe', 'paddle', 'attribute', 'campaign')),
  value            text not null check (char_length(value) between 1 and 64 and position('@' in value) = 0),
  -- When the customer used it: then it has to be in force.
  used_at          timestamptz not null,
  customer_user_id text check (length(customer_user_id) between 1 and 512),
  created_at       timestamptz not null default now(),
  constraint one_row_per_use unique nulls not distinct (app_id, user_key, source, environment, namespace, value, used_at, customer_user_id)
);
create index subscription_codes_by_created on subscription_codes (app_id, created_at desc);
create index subscription_codes_by_value on subscription_codes (app_id, namespace, (lower(value) collate "C"), created_at desc);
create index subscription_codes_by_user on subscription_codes (app_id, customer_user_id) where customer_user_id is not null;

-- The users and anonymous customers whom events name with a key, also by what began for free. No real key has more.
create function users_of_key(of_app text, key text, of_source text) returns table (customer_user_id text)
language sql stable parallel safe as $$
  select y.customer_user_id from subscription_codes y
   where y.app_id = of_app and y.user_key = key and y.source = of_source and y.environment = 'production' and y.customer_user_id is not null
  union
  (select w.customer_user_id
     from (select * from payment_user_keys z where z.app_id = of_app and z.user_key = key and z.source = of_source limit 200) k
    cross join lateral (select * from payment_users z where z.payment_id = k.payment_id offset 0) w
    where k.environment = 'production')
$$;

-- The codes of a payment with its rows and references, and when the customer used each: with the payment, or when its subscription began. A code
-- of the subscription is of its users: it is none (`is_free`) where one of them has a binding.
create function codes_of_payment(p payments, row_ids text[], refs text[])
returns table (namespace text, value text, used_at timestamptz, is_free boolean) language sql stable parallel safe as $$
  select x.namespace, x.value, p.occurred_at, true from unnest(refs) n (ref)
   cross join lateral (
     select * from payment_codes y
      where y.app_id = p.app_id and y.environment = p.environment and y.store = p.store
        and y.payment_ref = n.ref collate "default" offset 0) x
  union
  select x.namespace, x.value, x.used_at, not exists (
           select from users_of_key(p.app_id, k.user_key, k.source) u
            cross join lateral (
              select * from bindings z where z.app_id = p.app_id and z.customer_user_id = u.customer_user_id offset 0) b)
    from (select distinct y.user_key, y.source::text from unnest(row_ids) i
           cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y) k
   cross join lateral (
     select * from subscription_codes y
      where y.app_id = p.app_id and y.user_key = k.user_key and y.source = k.source and y.environment = p.environment
        and y.used_at <= p.occurred_at offset 0) x
$$;

-- The keys of a payment that nobody has: the anonymous customer, the subscription. Not the customer, who may be a company with many users: its
-- keys match a pattern. With each, the attributions of those whom events name with it (`owners`, null for one who belongs to nobody). A payment
-- without any key has its reference (`isPayment`).
create function keys_to_bind(p payments, row_ids text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  with keys as materialized (
    select distinct on (y.user_key) y.user_key, y.source::text, y.payment_id <> p.id as is_of_other, y.position
      from unnest(row_ids) i
     cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y
     where y.user_key !~ customer_key
     order by y.user_key, y.payment_id <> p.id, y.position
  ), own as (
    select k.*, null as is_payment from keys k
    union all
    select p.ref, e.source::text, false, 0, true from events e where e.id = p.event_id and not exists (select from keys)
  )
  select coalesce(jsonb_agg(jsonb_build_object('userKey', k.user_key, 'source', k.source, 'isPayment', coalesce(k.is_payment, false), 'owners', (
                              select coalesce(jsonb_agg(distinct case when b.reassigned_at is null then b.attribution_id::text else attribution_at(b, now()) end), '[]')
                                from users_of_key(p.app_id, k.user_key, k.source) u
                               cross join lateral (
                                 select * from bindings z where z.app_id = p.app_id and z.customer_user_id = u.customer_user_id offset 0) b))
                            order by k.is_of_other, k.position, k.user_key), '[]')
    from own k
   where not exists (select from bindings b where b.app_id = p.app_id and b.customer_user_id = k.user_key)
$$;

-- As before, with the codes of the subscription, each at the time when the customer used it. Of several uses the first one counts whose code is
-- of somebody.
drop function code_owners(payments, text[], text[], text);
drop function key_to_bind(payments, text[], text);
create function code_owners(p payments, row_ids text[], refs text[]) returns jsonb language sql stable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'codeId', o.id,
           'binding', jsonb_build_object(
             'boundAt', epoch_ms(now()), 'touchedAt', epoch_ms(o.used_at), 'matchMethod', 'purchase_code', 'reassignedTo', null,
             'affiliateId', f.id, 'linkId', null, 'affiliateStatus', f.status, 'affiliateRateBps', f.default_commission_rate_bps,
             'policy', case when app.policies_from <= now() then jsonb_build_object(
               'payments', 0, 'firstPaidAt', null, 'hasUnnumbered', false,
               'assigned', (
                 select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
                   from policy_in_effect(p.app_id, f.id, p.occurred_at) i)) end)) order by o.created_at, o.id), '[]')
    from (
      select c.id, c.affiliate_id, c.created_at, s.used_at, rank() over (order by s.used_at) as turn
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
        join affiliates g on g.id = c.affiliate_id and g.status <> 'removed') o
   cross join lateral (select * from apps y where y.id = p.app_id offset 0) app
   cross join lateral (select * from affiliates y where y.id = o.affiliate_id offset 0) f
   where o.turn = 1
$$;

-- A payment that was evaluated before the code of its subscription was known, or is just being evaluated, is evaluated again.
create function mark_payments_of_subscriptions() returns trigger language plpgsql as $$
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
           where a.environment = 'production'
             and exists (select from apps x where x.id = a.app_id and x.purchase_codes is not null)))
      order by q.id for update));
  return null;
end $$;
create trigger subscription_codes_mark_for_recheck after insert on subscription_codes
  referencing new table as added for each statement execute function mark_payments_of_subscriptions();

-- Whether no other user counted with the user of a binding at an instant.
create function is_only_user(b bindings, at timestamptz) returns boolean language sql stable parallel safe as $$
  select not exists (select from bindings z where z.id = b.counts_with and z.key_source is null and z.created_at <= at)
     and not exists (select from bindings z where z.counts_with = coalesce(b.counts_with, b.id::text) and z.id <> b.id
                                              and z.key_source is null and z.created_at <= at)
$$;

-- The attribution of a binding for a payment of an instant. What a founder says of one of a person's keys holds for all keys of the person that
-- a code bound, and so does what a founder says of the person's user, if there was one then.
create or replace function attribution_at(b bindings, at timestamptz) returns text language sql stable parallel safe as $$
  select case when b.reassigned_at is null then b.attribution_id::text else (
    select x.attribution_id
      from (select m.attribution_id::text, m.effective_from, m.created_at, m.position
              from manual_attributions m
              join bindings y on y.id = m.binding_id
             where m.binding_id = any(case when b.key_source is null then array[b.id::text] else array(
                     select z.id::text from bindings z where z.id = coalesce(b.counts_with, b.id::text)
                     union all
                     select z.id::text from bindings z where z.counts_with = coalesce(b.counts_with, b.id::text)) end)
               and m.position > 0 and m.effective_from <= at
               and (y.id = b.id or y.key_source is not null or is_only_user(y, m.created_at))
            union all
            select b.attribution_id::text, '-infinity', '-infinity', 0) x
     order by x.effective_from desc, x.created_at desc, x.position desc limit 1) end
$$;
