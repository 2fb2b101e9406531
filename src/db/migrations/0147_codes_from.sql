-- Purchase codes count for what was paid while the app takes them. Since when it does; null: from its beginning.
alter table apps add column purchase_codes_from timestamptz;

create function begin_purchase_codes() returns trigger language plpgsql as $$
begin
  new.purchase_codes_from := now();
  return new;
end $$;

create trigger apps_begin_purchase_codes before update of purchase_codes on apps
  for each row when (old.purchase_codes is null and new.purchase_codes is not null) execute function begin_purchase_codes();

-- The codes of a creator end with the removal. A creator who comes back gets new ones: what was paid meanwhile never earns.
create function end_codes_of_removed() returns trigger language plpgsql as $$
begin
  update codes set deactivated_at = greatest(now(), created_at)
   where app_id = new.app_id and affiliate_id = new.id and deactivated_at is null;
  return null;
end $$;

create trigger affiliates_end_codes after update of status on affiliates
  for each row when (new.status = 'removed' and old.status <> 'removed') execute function end_codes_of_removed();

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
                   from policy_in_effect(p.app_id, f.id, p.occurred_at) i)) end)) order by o.created_at, o.id), '[]')
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
