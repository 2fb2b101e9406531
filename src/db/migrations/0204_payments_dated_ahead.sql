-- A payment that its provider dates ahead, as RevenueCat does for renewals, was made when its event was stored, at the latest. What takes effect
-- after that, by the same clock, does not count for it: a policy, a group, a code. So each of its evaluations sees the same ones.
create function terms_at(p payments) returns timestamptz language sql stable parallel safe as $$
  select least(p.occurred_at, e.created_at) from events e where e.id = p.event_id
$$;

create or replace function code_owners(p payments, row_ids text[], refs text[]) returns jsonb language sql stable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'codeId', o.id,
           'binding', jsonb_build_object(
             'boundAt', epoch_ms(now()), 'touchedAt', epoch_ms(o.used_at), 'matchMethod', 'purchase_code', 'reassignedTo', null,
             'affiliateId', f.id, 'linkId', null, 'affiliateStatus', f.status, 'affiliateRateBps', f.default_commission_rate_bps,
             'policy', case when app.policies_from <= now() then jsonb_build_object(
               'payments', 0, 'firstPaidAt', null, 'hasUnnumbered', false,
               'assigned', (
                 select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
                   from policy_in_effect(p.app_id, f.id, terms_at(p)) i)) end)) order by o.created_at, o.id), '[]')
    from (
     -- Beside a creator of today, one who was removed makes the codes ambiguous. Alone, the codes count for nobody.
     select x.*, bool_or(x.status <> 'removed') over () as has_creator from (
      select c.id, c.affiliate_id, c.created_at, g.status, s.used_at, rank() over (order by s.used_at) as turn
        from codes_of_payment(p, row_ids, refs) s
        join apps taker on taker.id = p.app_id and coalesce(taker.purchase_codes_from <= s.used_at, true)
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
        -- The codes of who was removed by an earlier version work on, and count for nobody.
        join affiliates g on g.id = c.affiliate_id and (g.status <> 'removed' or c.deactivated_at is not null)) x
      where x.turn = 1) o
   cross join lateral (select * from apps y where y.id = p.app_id offset 0) app
   cross join lateral (select * from affiliates y where y.id = o.affiliate_id offset 0) f
   where o.has_creator
$$;

create or replace function codes_of_payment(p payments, row_ids text[], refs text[])
returns table (namespace text, value text, used_at timestamptz, is_free boolean) language sql stable parallel safe as $$
  select x.namespace, x.value, terms_at(p), true from unnest(refs) n (ref)
   cross join lateral (
     select * from payment_codes y
      where y.app_id = p.app_id and y.environment = p.environment and y.store = p.store
        and y.payment_ref = n.ref collate "default" offset 0) x
  union
  select x.namespace, x.value, least(x.used_at, x.created_at), not exists (
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
