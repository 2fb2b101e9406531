-- Sums for dashboards. A fact appends what it adds to them; the fold loop (src/rollup-fold-loop.ts) adds that up every second; a
-- read adds what is not folded yet. So no read counts rows, no fact waits for another one, and no sum is behind its facts.
-- docs/rollups.md gives the reasons.

---------------------------------------------------------------------------------------------------------------------
-- Stored sums, which only the fold loop and `rollups repair` change

-- Sums of the app, of one affiliate or of one link (scope, scope_id).
-- Popular rows are updated every second. Autovacuum starts after 2 % of the rows instead of 20 %, so that the dead versions
-- of a row stay within the free space of its page, where the next update reuses it.
create table rollups (
  app_id           app_id not null,
  scope            text collate "C" not null check (scope in ('app', 'affiliate', 'link')),
  scope_id         text collate "C" not null,
  -- '-infinity' for all time, otherwise the start of a quarter hour. Every time zone's offset is a multiple of that.
  bucket_at        timestamptz not null,
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
  -- Rank in the all-time rows: clicks of a link, commission_cents of an affiliate.
  rank_value        bigint,
  -- The affiliate of the link, in the all-time rows of links.
  link_affiliate_id affiliate_id,
  -- The affiliate's status, in its all-time row.
  affiliate_status  text,
  primary key (app_id, scope, scope_id, bucket_at)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);
create index rollups_payable on rollups (app_id, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and (matured_count <> 0 or matured_cents <> 0);
create index rollups_top_links on rollups (app_id, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_links_of_affiliate on rollups (app_id, link_affiliate_id, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_earners on rollups (app_id, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity';
create index rollups_top_earners_by_status on rollups (app_id, affiliate_status, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity';

-- The same sums for blocks of six hours. A month in any time zone is whole blocks and a few quarter hours at its ends.
create table rollup_blocks (
  app_id           app_id not null,
  scope            text collate "C" not null check (scope in ('app', 'affiliate', 'link')),
  scope_id         text collate "C" not null,
  block_at         timestamptz not null,
  clicks           bigint not null default 0,
  installs         bigint not null default 0,
  identified       bigint not null default 0,
  paid_users       bigint not null default 0,
  revenue_cents    bigint not null default 0,
  commission_cents bigint not null default 0,
  primary key (app_id, scope, scope_id, block_at)
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

-- How often the sums of an app were repaired. A repair whose snapshot is older than the last one does nothing.
create table rollup_repairs (
  app_id  app_id primary key references apps (id),
  repairs bigint not null
);

---------------------------------------------------------------------------------------------------------------------
-- The tail: what facts add to the sums and the fold loop has not added yet

-- Rows are inserted and deleted, never updated. The key has no sequence, so a copied database goes on without one.
-- Its columns have the types of those in `rollups`: only then does Postgres look up each part of the views below by its index.
create table rollup_deltas (
  created_at       timestamptz not null default now(),
  id               uuid not null default gen_random_uuid(),
  app_id           app_id not null,
  affiliate_id     affiliate_id not null,
  link_id          link_id,
  -- The start of the quarter hour in which it counts. Null for a change of status, which only counts in sums of all time.
  bucket_at        timestamptz,
  clicks           bigint not null default 0,
  installs         bigint not null default 0,
  identified       bigint not null default 0,
  paid_users       bigint not null default 0,
  revenue_cents    bigint not null default 0,
  commission_cents bigint not null default 0,
  matured_cents    bigint not null default 0,
  paid_cents       bigint not null default 0,
  matured_count    bigint not null default 0,
  primary key (created_at, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index rollup_deltas_by_affiliate on rollup_deltas (app_id, affiliate_id);
create index rollup_deltas_by_link on rollup_deltas (link_id) where link_id is not null;

-- The tail of each scope. A delta without a link has no scope_id there: a condition here would keep Postgres from passing the
-- id of a join to the index.
create view rollup_tail as
  select app_id, 'app' collate "C" as scope, app_id::text as scope_id, affiliate_id, bucket_at, clicks, installs, identified,
         paid_users, revenue_cents, commission_cents, matured_cents, paid_cents, matured_count
    from rollup_deltas
  union all
  select app_id, 'affiliate' collate "C", affiliate_id::text, affiliate_id, bucket_at, clicks, installs, identified,
         paid_users, revenue_cents, commission_cents, matured_cents, paid_cents, matured_count
    from rollup_deltas
  union all
  select app_id, 'link' collate "C", link_id::text, affiliate_id, bucket_at, clicks, installs, identified,
         paid_users, revenue_cents, commission_cents, matured_cents, paid_cents, matured_count
    from rollup_deltas;

-- The parts of the sums of all time: the stored one and the tail. A reader adds them up.
create view rollup_totals as
  select app_id, scope, scope_id, clicks, installs, identified, paid_users, revenue_cents, commission_cents, matured_cents,
         paid_cents, matured_count
    from rollups where bucket_at = '-infinity'
  union all
  select app_id, scope, scope_id, clicks, installs, identified, paid_users, revenue_cents, commission_cents, matured_cents,
         paid_cents, matured_count
    from rollup_tail;

---------------------------------------------------------------------------------------------------------------------
-- What each fact adds

-- The facts. Checks and repairs recompute the sums from this view. The triggers below state the same for new facts.
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

create function roll_up_clicks() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, clicks)
  select app_id, affiliate_id, link_id, rollup_bucket(clicked_at), count(*)
    from added where not is_bot group by 1, 2, 3, 4;
  return null;
end $$;
create trigger clicks_roll_up after insert on clicks referencing new table as added
  for each statement execute function roll_up_clicks();

create function roll_up_attribution() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, installs)
  values (new.app_id, new.affiliate_id, new.link_id, rollup_bucket(new.first_open_at), 1);
  return null;
end $$;
create trigger attributions_roll_up after insert on attributions for each row execute function roll_up_attribution();

create function roll_up_binding() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, identified)
  select new.app_id, affiliate_id, link_id, rollup_bucket(new.identified_at), 1
    from attributions where id = new.attribution_id;
  return null;
end $$;
create trigger bindings_roll_up after insert on bindings for each row execute function roll_up_binding();

create function roll_up_paid_user() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, paid_users)
  select new.app_id, affiliate_id, link_id, rollup_bucket(new.first_paid_at), 1
    from attributions where id = new.attribution_id;
  return null;
end $$;
create trigger bindings_roll_up_paid_new after insert on bindings
  for each row when (new.first_paid_at is not null) execute function roll_up_paid_user();
create trigger bindings_roll_up_paid after update of first_paid_at on bindings
  for each row when (old.first_paid_at is null and new.first_paid_at is not null) execute function roll_up_paid_user();

create function roll_up_revenue() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, revenue_cents)
  values (new.app_id, new.affiliate_id, new.link_id, rollup_bucket(new.occurred_at), new.amount_cents);
  return null;
end $$;
create trigger revenue_entries_roll_up after insert on revenue_entries for each row execute function roll_up_revenue();

create function roll_up_commission() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, commission_cents, matured_cents, paid_cents,
                             matured_count)
  values (new.app_id, new.affiliate_id, new.link_id, rollup_bucket(new.occurred_at), new.amount_cents,
          case new.status when 'matured' then new.amount_cents else 0 end,
          case new.status when 'paid' then new.amount_cents else 0 end, (new.status = 'matured')::int);
  return null;
end $$;
create trigger commissions_roll_up after insert on commissions for each row execute function roll_up_commission();

-- A sweep or a payout changes thousands of commissions with one statement. What they added before is taken back and what
-- they add now is added, without a join: the two lists have no index, so a plan for few rows would compare each with each.
create function roll_up_commission_status() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, matured_cents, paid_cents, matured_count)
  select *
    from (select app_id, affiliate_id, link_id, sum(case status when 'matured' then sign * amount_cents else 0 end) as matured_cents,
                 sum(case status when 'paid' then sign * amount_cents else 0 end) as paid_cents,
                 sum(case status when 'matured' then sign else 0 end) as matured_count
            from (select app_id, affiliate_id, link_id, status, amount_cents, 1 as sign from changed
                  union all select app_id, affiliate_id, link_id, status, amount_cents, -1 from before) c
           group by 1, 2, 3) d
   where (d.matured_cents, d.paid_cents, d.matured_count) <> (0, 0, 0);
  return null;
end $$;
create trigger commissions_roll_up_status after update on commissions
  referencing old table as before new table as changed
  for each statement execute function roll_up_commission_status();

-- Inserts the all-time row of an affiliate with the affiliate, so that affiliates without earnings are in the order too, and
-- copies status changes into it.
create function rank_affiliate() returns trigger language plpgsql as $$
begin
  insert into rollups as r (app_id, scope, scope_id, bucket_at, rank_value, affiliate_status)
  values (new.app_id, 'affiliate', new.id, '-infinity', 0, new.status)
  on conflict (app_id, scope, scope_id, bucket_at) do update set affiliate_status = excluded.affiliate_status;
  return null;
end $$;
create trigger affiliates_rank_new after insert on affiliates for each row execute function rank_affiliate();
create trigger affiliates_rank_status after update of status on affiliates
  for each row when (old.status <> new.status) execute function rank_affiliate();
