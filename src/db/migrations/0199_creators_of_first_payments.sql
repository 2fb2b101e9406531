-- The attribution through which the first payment of a user earned who was given to another creator before. Null: that of the binding. A user
-- pays for the creator who earns, so that revenue and paying users are those of the same creator.
alter table bindings
  add column first_paid_attribution_id text collate "C",
  add constraint only_paid_ones_have_its_attribution check (first_paid_attribution_id is null or first_paid_at is not null) not valid,
  add constraint first_payment_has_its_attribution foreign key (app_id, first_paid_attribution_id)
    references attributions (app_id, id) not valid;
drop trigger bindings_immutable on bindings;
create trigger bindings_immutable before update on bindings
  for each row when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
                     or old.counts_with is distinct from new.counts_with or old.key_source is distinct from new.key_source
                     or (old.reassigned_at is not null and old.reassigned_at is distinct from new.reassigned_at)
                     or (old.first_paid_at is not null
                         and (old.first_paid_at, old.first_paid_attribution_id) is distinct from (new.first_paid_at, new.first_paid_attribution_id)))
  execute function forbid_binding_change();

create or replace function roll_up_paid_user() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, paid_users)
  select new.app_id, affiliate_id, link_id, rollup_bucket(new.first_paid_at), 1
    from attributions where id = coalesce(new.first_paid_attribution_id, new.attribution_id);
  return null;
end $$;

create or replace view rollup_facts as
 SELECT clicks.app_id,
    clicks.affiliate_id,
    clicks.link_id,
    clicks.clicked_at AS at,
    (1)::bigint AS clicks,
    (0)::bigint AS installs,
    (0)::bigint AS identified,
    (0)::bigint AS paid_users,
    (0)::bigint AS revenue_cents,
    (0)::bigint AS commission_cents,
    (0)::bigint AS matured_cents,
    (0)::bigint AS paid_cents,
    (0)::bigint AS matured_count
   FROM clicks
  WHERE (NOT clicks.is_bot)
UNION ALL
 SELECT attributions.app_id,
    attributions.affiliate_id,
    attributions.link_id,
    attributions.first_open_at AS at,
    0 AS clicks,
    1 AS installs,
    0 AS identified,
    0 AS paid_users,
    0 AS revenue_cents,
    0 AS commission_cents,
    0 AS matured_cents,
    0 AS paid_cents,
    0 AS matured_count
   FROM attributions
  WHERE (attributions.device_id IS NOT NULL)
UNION ALL
 SELECT b.app_id,
    a.affiliate_id,
    a.link_id,
    b.identified_at AS at,
    0 AS clicks,
    0 AS installs,
    1 AS identified,
    0 AS paid_users,
    0 AS revenue_cents,
    0 AS commission_cents,
    0 AS matured_cents,
    0 AS paid_cents,
    0 AS matured_count
   FROM (bindings b
     JOIN attributions a ON (((a.id)::text = (b.attribution_id)::text)))
  WHERE (a.device_id IS NOT NULL)
UNION ALL
 SELECT b.app_id,
    a.affiliate_id,
    a.link_id,
    b.first_paid_at AS at,
    0 AS clicks,
    0 AS installs,
    0 AS identified,
    1 AS paid_users,
    0 AS revenue_cents,
    0 AS commission_cents,
    0 AS matured_cents,
    0 AS paid_cents,
    0 AS matured_count
   FROM (bindings b
     JOIN attributions a ON (((a.id)::text = COALESCE(b.first_paid_attribution_id, (b.attribution_id)::text))))
  WHERE (b.first_paid_at IS NOT NULL)
UNION ALL
 SELECT revenue_entries.app_id,
    revenue_entries.affiliate_id,
    revenue_entries.link_id,
    revenue_entries.occurred_at AS at,
    0 AS clicks,
    0 AS installs,
    0 AS identified,
    0 AS paid_users,
    revenue_entries.amount_cents AS revenue_cents,
    0 AS commission_cents,
    0 AS matured_cents,
    0 AS paid_cents,
    0 AS matured_count
   FROM revenue_entries
UNION ALL
 SELECT commissions.app_id,
    commissions.affiliate_id,
    commissions.link_id,
    commissions.occurred_at AS at,
    0 AS clicks,
    0 AS installs,
    0 AS identified,
    0 AS paid_users,
    0 AS revenue_cents,
    commissions.amount_cents AS commission_cents,
        CASE commissions.status
            WHEN 'matured'::text THEN (commissions.amount_cents)::bigint
            ELSE (0)::bigint
        END AS matured_cents,
        CASE commissions.status
            WHEN 'paid'::text THEN (commissions.amount_cents)::bigint
            ELSE (0)::bigint
        END AS paid_cents,
        CASE commissions.status
            WHEN 'matured'::text THEN 1
            ELSE 0
        END AS matured_count
   FROM commissions;
