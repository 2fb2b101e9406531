-- Parts of the snapshot of a payment that apps without policies and codes have not. As functions they cost these apps nothing: Postgres prepares
-- all of a statement whenever it runs, also the parts that it does not need.

-- The `PolicyContext` of a binding whose payments count with another one's, or with its own, for a payment of an instant.
create function policy_context(of_binding text, counts_with text, has_paid boolean, of_app text, of_affiliate text, at timestamptz)
returns jsonb language sql stable parallel safe as $$
  select jsonb_build_object(
           'subjectId', s.id, 'payments', coalesce(n.number, 0), 'firstPaidAt', epoch_ms(n.first_paid_at),
           'hasUnnumbered', n.number is null and (
             has_paid
             or exists (select from bindings y where y.id = s.id and y.first_paid_at is not null)
             or exists (select from bindings y where y.counts_with = s.id and y.first_paid_at is not null)),
           'assigned', (
             select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
               from policy_in_effect(of_app, of_affiliate, at) i))
    from (select coalesce(counts_with, of_binding) as id) s
    left join lateral (
      select x.number, x.first_paid_at from payment_numbers x
       where x.subject_id = s.id and x.counts_as is null order by x.number desc limit 1) n on true
$$;

create function stated_component(minor bigint, ppm int) returns jsonb language sql immutable parallel safe as $$
  select case when minor is not null then jsonb_build_object('minor', minor) when ppm is not null then jsonb_build_object('ppm', ppm) end
$$;

-- The `StatedComponents` of a payment with its references, by events of these kinds.
create function stated_components(p payments, refs text[], kinds text[]) returns jsonb language sql stable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
           'eventId', x.id, 'source', x.source, 'productId', x.product_id,
           'isSameAmount', (x.currency, x.amount_minor) = (p.currency, p.amount_minor),
           'tax', stated_component(x.tax_minor, x.tax_ppm), 'storeFee', stated_component(x.store_fee_minor, x.store_fee_ppm)))), '[]')
    from unnest(refs) n (ref)
   cross join lateral (
     select * from events y where y.app_id = p.app_id and y.payment_ref = n.ref collate "default" offset 0) x
   where x.environment = p.environment and x.store = p.store and x.kind = any(kinds)
$$;

-- What a code binds of a payment without a user: its subscription or anonymous customer, else the payment alone. Not its customer, which may be
-- a company with many users: its keys match a pattern. Null if a user has the same id.
create function key_to_bind(p payments, row_ids text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  select jsonb_build_object('userKey', k.user_key, 'source', k.source)
    from (
      select * from (
        select y.user_key, y.source::text, 1 as rank, y.payment_id <> p.id as is_of_other, y.position
          from unnest(row_ids) i
         cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y
         where y.user_key !~ customer_key
        union all
        select p.ref, e.source::text, 2, false, 0 from events e where e.id = p.event_id) x
       order by rank, is_of_other, position, user_key limit 1) k
   where not exists (select from bindings b where b.app_id = p.app_id and b.customer_user_id = k.user_key)
$$;

-- The `CodeOwner`s of a payment with its references, the first to register a code first, without the ids of what their codes would make.
create function code_owners(p payments, row_ids text[], refs text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'codeId', c.id, 'key', key_to_bind(p, row_ids, customer_key),
           'binding', jsonb_build_object(
             'boundAt', epoch_ms(now()), 'touchedAt', epoch_ms(p.occurred_at), 'matchMethod', 'purchase_code', 'reassignedTo', null,
             'affiliateId', f.id, 'linkId', null, 'affiliateStatus', f.status, 'affiliateRateBps', f.default_commission_rate_bps,
             'policy', case when app.policies_from <= now() then jsonb_build_object(
               'payments', 0, 'firstPaidAt', null, 'hasUnnumbered', false,
               'assigned', (
                 select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
                   from policy_in_effect(p.app_id, f.id, p.occurred_at) i)) end)) order by c.created_at, c.id), '[]')
    from (
      select distinct x.namespace, x.value from unnest(refs) n (ref)
       cross join lateral (
         select * from payment_codes y
          where y.app_id = p.app_id and y.environment = p.environment and y.store = p.store
            and y.payment_ref = n.ref collate "default" offset 0) x) s
   cross join lateral (
     -- A code works from its registration until it is deactivated. Of some namespaces events state the id.
     select * from (
         (select * from codes y
           where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id is null
             and lower(y.value) collate "C" = lower(s.value) collate "C"
             and y.created_at <= p.occurred_at and coalesce(y.deactivated_at > p.occurred_at, true) order by y.created_at limit 1)
         union all
         (select * from codes y
           where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id = s.value collate "C"
             and y.created_at <= p.occurred_at and coalesce(y.deactivated_at > p.occurred_at, true) order by y.created_at limit 1)) o
      limit 1) c
   cross join lateral (select * from apps y where y.id = p.app_id offset 0) app
   cross join lateral (select * from affiliates y where y.id = c.affiliate_id offset 0) f
   where f.status <> 'removed'
$$;
