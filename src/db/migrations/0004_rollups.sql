-- Sums for dashboards. Triggers update them in the statement that changes a fact, so no read counts rows. docs/rollups.md
-- gives the reasons for the keys and the orders.

---------------------------------------------------------------------------------------------------------------------
-- Tables

-- Sums of the app, of one affiliate or of one link (scope, scope_id).
-- Popular rows are updated all the time. Autovacuum starts after 2 % of the rows instead of 20 %, so that the dead versions
-- of a row stay within the free space of its page, where the next update reuses it.
create table rollups (
  app_id           app_id not null,
  scope            text collate "C" not null check (scope in ('app', 'affiliate', 'link')),
  scope_id         text collate "C" not null,
  -- '-infinity' for all time, otherwise the start of a quarter hour. Every time zone's offset is a multiple of that.
  bucket_at        timestamptz not null,
  -- Spreads the clicks of a popular link over several rows. Commission sums of an affiliate are always in shard 0, where
  -- one index can order affiliates by earnings.
  shard            smallint not null check (shard between 0 and 7),
  clicks           bigint not null default 0,
  installs         bigint not null default 0,
  identified       bigint not null default 0,
  paid_users       bigint not null default 0,
  revenue_cents    bigint not null default 0,
  -- All commissions in any status. What is neither matured nor paid is pending.
  commission_cents bigint not null default 0,
  matured_cents    bigint not null default 0,
  paid_cents       bigint not null default 0,
  matured_count    bigint not null default 0,
  -- The columns below order rows. They are null in rows without a place in an order: Postgres updates a row in place only
  -- while no indexed column changes, and `clicks` changes in every row that a click touches.
  -- Rank: clicks in the all-time rows of links, commission_cents in the all-time row of an affiliate in shard 0.
  rank_value        bigint,
  -- The affiliate of the link, in the all-time rows of links.
  link_affiliate_id affiliate_id,
  -- The affiliate's status, in its all-time row in shard 0.
  affiliate_status  text,
  primary key (app_id, scope, scope_id, bucket_at, shard)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);
create index rollups_payable on rollups (app_id, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0 and matured_count > 0;
create index rollups_top_links on rollups (app_id, shard, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_links_of_affiliate on rollups (app_id, link_affiliate_id, shard, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_earners on rollups (app_id, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0;
create index rollups_top_earners_by_status on rollups (app_id, affiliate_status, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0;

-- The same sums for blocks of six hours. A month in any time zone is whole blocks and a few quarter hours at its ends.
create table rollup_blocks (
  app_id           app_id not null,
  scope            text collate "C" not null check (scope in ('app', 'affiliate', 'link')),
  scope_id         text collate "C" not null,
  block_at         timestamptz not null,
  shard            smallint not null check (shard between 0 and 7),
  clicks           bigint not null default 0,
  installs         bigint not null default 0,
  identified       bigint not null default 0,
  paid_users       bigint not null default 0,
  revenue_cents    bigint not null default 0,
  commission_cents bigint not null default 0,
  primary key (app_id, scope, scope_id, block_at, shard)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

-- Returns the start of the six hours that contain an instant.
create function rollup_block(at timestamptz) returns timestamptz language sql immutable parallel safe as $$
  select date_bin('6 hours', at, timestamptz '2000-01-01 00:00:00+00')
$$;

-- Returns the start of the quarter hour that contains an instant.
create function rollup_bucket(at timestamptz) returns timestamptz language sql immutable parallel safe as $$
  select date_bin('15 minutes', at, timestamptz '2000-01-01 00:00:00+00')
$$;

---------------------------------------------------------------------------------------------------------------------
-- How a fact changes the sums

create type rollup_delta as (
  app_id app_id, affiliate_id affiliate_id, link_id link_id, at timestamptz,
  clicks bigint, installs bigint, identified bigint, paid_users bigint, revenue_cents bigint,
  commission_cents bigint, matured_cents bigint, paid_cents bigint, matured_count bigint
);

-- What each fact adds to the roll-ups. Checks and repairs recompute the sums from this view. The triggers below state the
-- same for the rows that a statement changed.
create view rollup_facts as
  select app_id, affiliate_id, link_id, clicked_at as at, 1::bigint as clicks, 0::bigint as installs, 0::bigint as identified,
         0::bigint as paid_users, 0::bigint as revenue_cents, 0::bigint as commission_cents, 0::bigint as matured_cents,
         0::bigint as paid_cents, 0::bigint as matured_count
    from clicks where not is_bot
  union all
  select app_id, affiliate_id, link_id, first_open_at, 0, 1, 0, 0, 0, 0, 0, 0, 0 from attributions
  union all
  select b.app_id, a.affiliate_id, a.link_id, b.identified_at, 0, 0, 1, 0, 0, 0, 0, 0, 0
    from bindings b join attributions a on a.id = b.attribution_id
  union all
  select b.app_id, a.affiliate_id, a.link_id, b.first_paid_at, 0, 0, 0, 1, 0, 0, 0, 0, 0
    from bindings b join attributions a on a.id = b.attribution_id where b.first_paid_at is not null
  union all
  select app_id, affiliate_id, link_id, occurred_at, 0, 0, 0, 0, amount_cents, 0, 0, 0, 0 from revenue_entries
  union all
  select app_id, affiliate_id, link_id, occurred_at, 0, 0, 0, 0, 0, amount_cents,
         case status when 'matured' then amount_cents else 0 end, case status when 'paid' then amount_cents else 0 end,
         case status when 'matured' then 1 else 0 end
    from commissions;

-- The position of a scope in the order in which all statements lock rows: app, link, affiliate. One earning runs the triggers
-- of commissions, revenue and paid users, each with a call of the function below. With this order, a statement that shares a
-- shard with another one meets it at the row of the app, before it has locked anything that the other one still needs. Money
-- of an affiliate is always in shard 0, which statements of all shards share: so these rows come last.
create function rollup_lock_rank(scope text) returns integer language sql immutable parallel safe as $$
  select case scope when 'app' then 1 when 'link' then 2 else 3 end
$$;

-- Adds facts to the sums of the app, its link and its affiliate: in all time, in the quarter hour and in the six hours.
-- Status sums have no history, so they are only in the all-time row. Rows are taken in the order above, those of `rollups`
-- first. Nearly every statement adds one fact, and for one fact Postgres needs neither to group nor to sort: the values below
-- are in that order.
create function add_to_rollups(deltas rollup_delta[]) returns void language plpgsql as $$
declare
  d rollup_delta;
  is_money boolean;
  is_timed boolean;
begin
  if cardinality(deltas) = 1 then
    d := deltas[1];
    is_money := d.commission_cents <> 0 or d.matured_cents <> 0 or d.paid_cents <> 0 or d.matured_count <> 0;
    is_timed := d.clicks <> 0 or d.installs <> 0 or d.identified <> 0 or d.paid_users <> 0 or d.revenue_cents <> 0
                or d.commission_cents <> 0;
    insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, clicks, installs, identified, paid_users,
                              revenue_cents, commission_cents, matured_cents, paid_cents, matured_count, rank_value,
                              link_affiliate_id)
    select d.app_id, v.scope, v.scope_id, v.bucket_at,
           case when v.scope = 'affiliate' and is_money then 0 else pg_backend_pid() % 8 end,
           d.clicks, d.installs, d.identified, d.paid_users, d.revenue_cents, d.commission_cents,
           d.matured_cents * v.is_total, d.paid_cents * v.is_total, d.matured_count * v.is_total,
           case when v.is_total = 0 then null when v.scope = 'link' then d.clicks
                when v.scope = 'affiliate' and is_money then d.commission_cents end,
           case when v.scope = 'link' and v.is_total = 1 then d.affiliate_id end
      from (values ('app', d.app_id::text, timestamptz '-infinity', 1),
                   ('app', d.app_id::text, rollup_bucket(d.at), 0),
                   ('link', d.link_id::text, '-infinity', 1),
                   ('link', d.link_id::text, rollup_bucket(d.at), 0),
                   ('affiliate', d.affiliate_id::text, '-infinity', 1),
                   ('affiliate', d.affiliate_id::text, rollup_bucket(d.at), 0)) v (scope, scope_id, bucket_at, is_total)
     where v.scope_id is not null and (v.is_total = 1 or is_timed)
    on conflict (app_id, scope, scope_id, bucket_at, shard) do update set
      clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
      identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
      revenue_cents = r.revenue_cents + excluded.revenue_cents,
      commission_cents = r.commission_cents + excluded.commission_cents,
      matured_cents = r.matured_cents + excluded.matured_cents, paid_cents = r.paid_cents + excluded.paid_cents,
      matured_count = r.matured_count + excluded.matured_count, rank_value = r.rank_value + coalesce(excluded.rank_value, 0);
    if is_timed then
      insert into rollup_blocks as r (app_id, scope, scope_id, block_at, shard, clicks, installs, identified, paid_users,
                                      revenue_cents, commission_cents)
      select d.app_id, v.scope, v.scope_id, rollup_block(d.at), pg_backend_pid() % 8,
             d.clicks, d.installs, d.identified, d.paid_users, d.revenue_cents, d.commission_cents
        from (values ('app', d.app_id::text), ('link', d.link_id::text), ('affiliate', d.affiliate_id::text))
             v (scope, scope_id)
       where v.scope_id is not null
      on conflict (app_id, scope, scope_id, block_at, shard) do update set
        clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
        identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
        revenue_cents = r.revenue_cents + excluded.revenue_cents,
        commission_cents = r.commission_cents + excluded.commission_cents;
    end if;
    return;
  end if;

  insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, clicks, installs, identified, paid_users,
                            revenue_cents, commission_cents, matured_cents, paid_cents, matured_count, rank_value,
                            link_affiliate_id)
  select x.app_id, s.scope, s.scope_id, b.bucket_at,
         case when s.scope = 'affiliate' and s.money then 0 else pg_backend_pid() % 8 end as shard,
         sum(x.clicks), sum(x.installs), sum(x.identified), sum(x.paid_users), sum(x.revenue_cents),
         sum(x.commission_cents), sum(x.matured_cents * b.is_total), sum(x.paid_cents * b.is_total),
         sum(x.matured_count * b.is_total),
         case when b.is_total = 0 then null when s.scope = 'link' then sum(x.clicks)
              when s.scope = 'affiliate' then sum(x.commission_cents) filter (where s.money) end,
         case when s.scope = 'link' and b.is_total = 1 then min(x.affiliate_id::text) end
    from unnest(deltas) x
   cross join lateral (values
      ('app', x.app_id::text, false),
      ('affiliate', x.affiliate_id::text, x.commission_cents <> 0 or x.matured_count <> 0 or x.paid_cents <> 0 or x.matured_cents <> 0),
      ('link', x.link_id::text, false)) s (scope, scope_id, money)
   cross join lateral (values (timestamptz '-infinity', 1), (rollup_bucket(x.at), 0)) b (bucket_at, is_total)
   where s.scope_id is not null
     and (b.is_total = 1 or x.clicks <> 0 or x.installs <> 0 or x.identified <> 0 or x.paid_users <> 0
          or x.revenue_cents <> 0 or x.commission_cents <> 0)
   group by 1, 2, 3, 4, 5, b.is_total
   order by 1, rollup_lock_rank(s.scope), 3, 4, 5
  on conflict (app_id, scope, scope_id, bucket_at, shard) do update set
    clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
    identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
    revenue_cents = r.revenue_cents + excluded.revenue_cents,
    commission_cents = r.commission_cents + excluded.commission_cents,
    matured_cents = r.matured_cents + excluded.matured_cents, paid_cents = r.paid_cents + excluded.paid_cents,
    matured_count = r.matured_count + excluded.matured_count, rank_value = r.rank_value + coalesce(excluded.rank_value, 0);
  insert into rollup_blocks as r (app_id, scope, scope_id, block_at, shard, clicks, installs, identified, paid_users,
                                  revenue_cents, commission_cents)
  select x.app_id, s.scope, s.scope_id, rollup_block(x.at), pg_backend_pid() % 8 as shard,
         sum(x.clicks), sum(x.installs), sum(x.identified), sum(x.paid_users), sum(x.revenue_cents),
         sum(x.commission_cents)
    from unnest(deltas) x
   cross join lateral (values ('app', x.app_id::text), ('affiliate', x.affiliate_id::text), ('link', x.link_id::text))
              s (scope, scope_id)
   where s.scope_id is not null
     and (x.clicks <> 0 or x.installs <> 0 or x.identified <> 0 or x.paid_users <> 0 or x.revenue_cents <> 0
          or x.commission_cents <> 0)
   group by 1, 2, 3, 4, 5
   order by 1, rollup_lock_rank(s.scope), 3, 4, 5
  on conflict (app_id, scope, scope_id, block_at, shard) do update set
    clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
    identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
    revenue_cents = r.revenue_cents + excluded.revenue_cents,
    commission_cents = r.commission_cents + excluded.commission_cents;
end $$;

-- Dry runs (src/db/with-rollback.ts) leave the sums alone: they would lock rows of the whole app until their end.
create function apply_rollup(deltas rollup_delta[]) returns void language plpgsql as $$
begin
  if current_setting('tributary.dry_run', true) = 'on' then return; end if;
  perform add_to_rollups(deltas);
end $$;

create function roll_up_clicks() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(select row(app_id, affiliate_id, link_id, clicked_at, 1, 0, 0, 0, 0, 0, 0, 0, 0)::rollup_delta
                               from added where not is_bot));
  return null;
end $$;
create trigger clicks_roll_up after insert on clicks referencing new table as added
  for each statement execute function roll_up_clicks();

create function roll_up_attributions() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(select row(app_id, affiliate_id, link_id, first_open_at, 0, 1, 0, 0, 0, 0, 0, 0, 0)::rollup_delta
                               from added));
  return null;
end $$;
create trigger attributions_roll_up after insert on attributions referencing new table as added
  for each statement execute function roll_up_attributions();

create function roll_up_bindings() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(
    select row(b.app_id, a.affiliate_id, a.link_id, b.identified_at, 0, 0, 1, 0, 0, 0, 0, 0, 0)::rollup_delta
      from added b join attributions a on a.id = b.attribution_id));
  return null;
end $$;
create trigger bindings_roll_up after insert on bindings referencing new table as added
  for each statement execute function roll_up_bindings();

create function roll_up_paid_users() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(
    select row(b.app_id, a.affiliate_id, a.link_id, b.first_paid_at, 0, 0, 0, 1, 0, 0, 0, 0, 0)::rollup_delta
      from changed b join before o on o.id = b.id join attributions a on a.id = b.attribution_id
     where o.first_paid_at is null and b.first_paid_at is not null));
  return null;
end $$;
create trigger bindings_roll_up_paid after update on bindings referencing old table as before new table as changed
  for each statement execute function roll_up_paid_users();

create function roll_up_revenue() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(select row(app_id, affiliate_id, link_id, occurred_at, 0, 0, 0, 0, amount_cents, 0, 0, 0, 0)::rollup_delta
                               from added));
  return null;
end $$;
create trigger revenue_entries_roll_up after insert on revenue_entries referencing new table as added
  for each statement execute function roll_up_revenue();

create function roll_up_new_commissions() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(
    select row(app_id, affiliate_id, link_id, occurred_at, 0, 0, 0, 0, 0, amount_cents,
               case status when 'matured' then amount_cents else 0 end, case status when 'paid' then amount_cents else 0 end,
               case status when 'matured' then 1 else 0 end)::rollup_delta
      from added));
  return null;
end $$;
create trigger commissions_roll_up after insert on commissions referencing new table as added
  for each statement execute function roll_up_new_commissions();

create function roll_up_commission_status() returns trigger language plpgsql as $$
begin
  perform apply_rollup(array(
    select row(n.app_id, n.affiliate_id, n.link_id, n.occurred_at, 0, 0, 0, 0, 0, 0,
               (case n.status when 'matured' then n.amount_cents else 0 end) - (case o.status when 'matured' then n.amount_cents else 0 end),
               (case n.status when 'paid' then n.amount_cents else 0 end) - (case o.status when 'paid' then n.amount_cents else 0 end),
               (n.status = 'matured')::int - (o.status = 'matured')::int)::rollup_delta
      from changed n join before o on o.id = n.id where o.status <> n.status));
  return null;
end $$;
create trigger commissions_roll_up_status after update on commissions
  referencing old table as before new table as changed
  for each statement execute function roll_up_commission_status();

-- Inserts the all-time row of an affiliate with the affiliate, so that affiliates without earnings are in the order too, and
-- copies status changes into it.
create function rank_affiliate() returns trigger language plpgsql as $$
begin
  insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, rank_value, affiliate_status)
  values (new.app_id, 'affiliate', new.id, '-infinity', 0, 0, new.status)
  on conflict (app_id, scope, scope_id, bucket_at, shard) do update set affiliate_status = excluded.affiliate_status;
  return null;
end $$;
create trigger affiliates_rank_new after insert on affiliates for each row execute function rank_affiliate();
create trigger affiliates_rank_status after update of status on affiliates
  for each row when (old.status <> new.status) execute function rank_affiliate();
