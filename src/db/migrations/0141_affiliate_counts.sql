-- How many affiliates an app has, by status: a list says how long it is without counting its rows. A statement that creates
-- affiliates or changes their status changes one row here for each status, in the order of the key.
create table affiliate_counts (
  app_id     app_id not null references apps (id),
  status     text collate "C" not null,
  affiliates bigint not null,
  primary key (app_id, status)
);

create function count_new_affiliates() returns trigger language plpgsql as $$
begin
  insert into affiliate_counts as c (app_id, status, affiliates)
  select app_id, status, count(*) from created group by 1, 2 order by 1, 2
  on conflict (app_id, status) do update set affiliates = c.affiliates + excluded.affiliates;
  return null;
end $$;

create function count_changed_affiliates() returns trigger language plpgsql as $$
begin
  insert into affiliate_counts as c (app_id, status, affiliates)
  select app_id, status, sum(change)
    from (select app_id, status, 1 as change from after union all select app_id, status, -1 from before) x
   group by 1, 2 having sum(change) <> 0 order by 1, 2
  on conflict (app_id, status) do update set affiliates = c.affiliates + excluded.affiliates;
  return null;
end $$;

-- No affiliate is created or changed from here to the end, so those that exist are counted once.
create trigger affiliates_count_new after insert on affiliates
  referencing new table as created for each statement execute function count_new_affiliates();
create trigger affiliates_count_changed after update on affiliates
  referencing old table as before new table as after for each statement execute function count_changed_affiliates();

insert into affiliate_counts (app_id, status, affiliates)
select app_id, status, count(*) from affiliates group by 1, 2;
