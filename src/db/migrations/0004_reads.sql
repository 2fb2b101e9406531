-- What reads need so that their cost follows what they answer and not how many rows there are: a coarser step of time in
-- the roll-ups, and orders that an index holds. docs/rollups.md says what each is for.

-- Facts that are written while this runs wait until it is through, and are then counted the new way.
lock table affiliates, clicks, attributions, bindings, revenue_entries, commissions, rollups in share row exclusive mode;

-- Six hours in one row. A month of any time zone is a few quarter hours at its ends and whole blocks between.
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
) with (fillfactor = 70);

-- The start of the six hours that an instant is in.
create function rollup_block(at timestamptz) returns timestamptz language sql immutable parallel safe as $$
  select date_bin('6 hours', at, timestamptz '2000-01-01 00:00:00+00')
$$;

-- What orders rows stands in a column of its own, null where nothing is ordered: Postgres updates a row in place only
-- while no indexed column changes, and `clicks` changes in every row that a click touches.
alter table rollups
  add column rank_value bigint,
  add column link_affiliate_id affiliate_id,
  add column affiliate_status text;
comment on column rollups.rank_value is
  'clicks in the all-time rows of links; commission_cents in the all-time row of shard 0 of an affiliate; else null';
comment on column rollups.link_affiliate_id is 'whose link it is, in the all-time rows of links only';
comment on column rollups.affiliate_status is 'the affiliate''s status, in its all-time row of shard 0 only';

update rollups r set rank_value = r.clicks, link_affiliate_id = l.affiliate_id
  from links l where r.scope = 'link' and r.bucket_at = '-infinity' and l.id = r.scope_id;
-- Every affiliate has its row from the beginning, so that those who earned nothing stand in the order, too.
insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, rank_value, affiliate_status)
select app_id, 'affiliate', id, '-infinity', 0, 0, status from affiliates
on conflict (app_id, scope, scope_id, bucket_at, shard) do update set
  rank_value = r.commission_cents, affiliate_status = excluded.affiliate_status;
insert into rollup_blocks (app_id, scope, scope_id, block_at, shard, clicks, installs, identified, paid_users,
                           revenue_cents, commission_cents)
select app_id, scope, scope_id, rollup_block(bucket_at), shard, sum(clicks), sum(installs), sum(identified),
       sum(paid_users), sum(revenue_cents), sum(commission_cents)
  from rollups where bucket_at > '-infinity' group by 1, 2, 3, 4, 5;

drop index rollups_top_links;
drop index rollups_top_earners;
create index rollups_top_links on rollups (app_id, shard, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_links_of_affiliate on rollups (app_id, link_affiliate_id, shard, rank_value desc, scope_id)
  where scope = 'link' and bucket_at = '-infinity';
create index rollups_top_earners on rollups (app_id, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0;
create index rollups_top_earners_by_status on rollups (app_id, affiliate_status, rank_value desc, scope_id)
  where scope = 'affiliate' and bucket_at = '-infinity' and shard = 0;

-- As in 0002, and six hours besides. Nearly every statement brings one fact, and for one fact Postgres needs neither to
-- group nor to sort: the values below are in the order of the key. That pays for the rows that are new here.
create or replace function apply_rollup(deltas rollup_delta[]) returns void language plpgsql as $$
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
      from (values ('affiliate', d.affiliate_id::text, timestamptz '-infinity', 1),
                   ('affiliate', d.affiliate_id::text, rollup_bucket(d.at), 0),
                   ('app', d.app_id::text, '-infinity', 1),
                   ('app', d.app_id::text, rollup_bucket(d.at), 0),
                   ('link', d.link_id::text, '-infinity', 1),
                   ('link', d.link_id::text, rollup_bucket(d.at), 0)) v (scope, scope_id, bucket_at, is_total)
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
        from (values ('affiliate', d.affiliate_id::text), ('app', d.app_id::text), ('link', d.link_id::text))
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
   order by 1, 2, 3, 4, 5
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
   order by 1, 2, 3, 4, 5
  on conflict (app_id, scope, scope_id, block_at, shard) do update set
    clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
    identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
    revenue_cents = r.revenue_cents + excluded.revenue_cents,
    commission_cents = r.commission_cents + excluded.commission_cents;
end $$;

-- An affiliate's row in the order of earners begins with the affiliate and follows its status, in the same statement.
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

-- The diagnostic of user ids begins with those that were heard of last.
create index events_naming_users on events (app_id, id desc) where customer_user_id is not null and kind <> 'test';
create index identities_by_created on identities (app_id, created_at desc);
