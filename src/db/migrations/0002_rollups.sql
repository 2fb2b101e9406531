-- Counts and sums that dashboards show, kept by triggers in the same statement that changes a fact, so that no read
-- counts rows. docs/rollups.md says why the key looks as it does.
--
-- scope, scope_id: the app, one affiliate or one link. bucket_at: '-infinity' for all time, else the start of a quarter
-- hour (every time zone's offset is a multiple of that). shard: spreads a popular link's clicks over several rows;
-- money of an affiliate stays in shard 0, where one index can order creators by what they earned.
create table rollups (
  app_id           app_id not null,
  scope            text collate "C" not null check (scope in ('app', 'affiliate', 'link')),
  scope_id         text collate "C" not null,
  bucket_at        timestamptz not null,
  shard            smallint not null check (shard between 0 and 7),
  clicks           bigint not null default 0,
  installs         bigint not null default 0,
  identified       bigint not null default 0,
  paid_users       bigint not null default 0,
  revenue_cents    bigint not null default 0,
  -- All commissions whatever their status; pending is what is neither matured nor paid.
  commission_cents bigint not null default 0,
  matured_cents    bigint not null default 0,
  paid_cents       bigint not null default 0,
  matured_count    bigint not null default 0,
  primary key (app_id, scope, scope_id, bucket_at, shard)
) with (fillfactor = 70);
create index rollups_top_earners on rollups (app_id, commission_cents desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0;
create index rollups_payable on rollups (app_id, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0 and matured_count > 0;
create index rollups_top_links on rollups (app_id, clicks desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';

create type rollup_delta as (
  app_id app_id, affiliate_id affiliate_id, link_id link_id, at timestamptz,
  clicks bigint, installs bigint, identified bigint, paid_users bigint, revenue_cents bigint,
  commission_cents bigint, matured_cents bigint, paid_cents bigint, matured_count bigint
);

-- What each fact adds to the roll-ups: the one definition, used by the recomputation; the triggers below say the same
-- of the rows that a statement changed.
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

-- The start of the quarter hour that an instant is in.
create function rollup_bucket(at timestamptz) returns timestamptz language sql immutable parallel safe as $$
  select date_bin('15 minutes', at, timestamptz '2000-01-01 00:00:00+00')
$$;

-- One fact counts for the app, its affiliate and its link; in its quarter hour and in all time. Status sums have no
-- history, so they only stand in all time. Rows are taken in key order, so that two statements can't deadlock here.
create function apply_rollup(deltas rollup_delta[]) returns void language sql as $$
  insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, clicks, installs, identified, paid_users,
                            revenue_cents, commission_cents, matured_cents, paid_cents, matured_count)
  select d.app_id, s.scope, s.scope_id, b.bucket_at,
         case when s.scope = 'affiliate' and s.money then 0 else pg_backend_pid() % 8 end as shard,
         sum(d.clicks), sum(d.installs), sum(d.identified), sum(d.paid_users), sum(d.revenue_cents),
         sum(d.commission_cents), sum(d.matured_cents * b.is_total), sum(d.paid_cents * b.is_total),
         sum(d.matured_count * b.is_total)
    from unnest(deltas) d
   cross join lateral (values
      ('app', d.app_id::text, false),
      ('affiliate', d.affiliate_id::text, d.commission_cents <> 0 or d.matured_count <> 0 or d.paid_cents <> 0 or d.matured_cents <> 0),
      ('link', d.link_id::text, false)) s (scope, scope_id, money)
   cross join lateral (values (timestamptz '-infinity', 1), (rollup_bucket(d.at), 0)) b (bucket_at, is_total)
   where s.scope_id is not null
     and (b.is_total = 1 or d.clicks <> 0 or d.installs <> 0 or d.identified <> 0 or d.paid_users <> 0
          or d.revenue_cents <> 0 or d.commission_cents <> 0)
   group by 1, 2, 3, 4, 5
   order by 1, 2, 3, 4, 5
  on conflict (app_id, scope, scope_id, bucket_at, shard) do update set
    clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
    identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
    revenue_cents = r.revenue_cents + excluded.revenue_cents,
    commission_cents = r.commission_cents + excluded.commission_cents,
    matured_cents = r.matured_cents + excluded.matured_cents, paid_cents = r.paid_cents + excluded.paid_cents,
    matured_count = r.matured_count + excluded.matured_count
$$;

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
