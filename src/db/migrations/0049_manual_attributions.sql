-- A founder says to whom a user belongs: a user whom no device led to a creator, or, for later payments only, any user. A fact with its
-- reason and author; a later one takes its place.
create domain manual_attribution_id as text collate "C" check (value ~ '^mat_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- An attribution that a person makes belongs to no device.
alter table attributions
  alter column device_id drop not null,
  drop constraint attributions_match_method_check,
  add constraint attributions_match_method_check check (match_method in ('claim_token', 'code', 'deferred', 'manual')) not valid,
  add constraint only_manual_ones_have_no_device check ((device_id is null) = (match_method = 'manual')) not valid;

create table manual_attributions (
  id             manual_attribution_id primary key,
  app_id         app_id not null,
  binding_id     binding_id not null,
  -- 0 for the one that binds the user.
  position       integer not null check (position >= 0),
  -- Null: later payments belong to nobody.
  attribution_id attribution_id unique,
  effective_from timestamptz not null,
  -- What earlier payments earned by it.
  payments       integer not null check (payments >= 0),
  earned_cents   cents not null,
  -- Null once the user was erased.
  reason         text check (length(reason) between 1 and 500),
  account_id     account_id not null,
  key_id         key_id not null,
  created_at     timestamptz not null default now(),
  constraint binding_needs_an_attribution check (position > 0 or attribution_id is not null),
  -- Only the first one can reach back: what a user's payments earned before stays.
  constraint only_the_first_reaches_back check (position = 0 or effective_from >= created_at),
  unique (binding_id, position),
  unique (app_id, id),
  foreign key (app_id, binding_id) references bindings (app_id, id),
  foreign key (app_id, attribution_id) references attributions (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id)
);
create index manual_attributions_by_app on manual_attributions (app_id, created_at desc, id desc);
create index manual_attributions_in_effect on manual_attributions (binding_id, effective_from desc, position desc);
create trigger manual_attributions_no_delete before delete or truncate on manual_attributions
  for each statement execute function forbid_change();
create trigger manual_attributions_audit after insert on manual_attributions
  for each row execute function write_audit_row('manual_attribution', 'id', 'binding_id attribution_id effective_from payments earned_cents reason!');

create function guard_manual_attribution() returns trigger language plpgsql as $$
declare
  edited manual_attributions := new;
begin
  edited.reason := old.reason;
  if edited is not distinct from old and new.reason is null then
    return new;
  end if;
  raise exception 'manual attribution % cannot be changed: make another one', old.id using errcode = 'integrity_constraint_violation';
end $$;
create trigger manual_attributions_guard before update on manual_attributions
  for each row execute function guard_manual_attribution();

-- When the user was first given to another creator. Null for nearly all: then nothing is looked up.
alter table bindings add column reassigned_at timestamptz;
drop trigger bindings_immutable on bindings;
create trigger bindings_immutable before update on bindings
  for each row when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
                     or old.counts_with is distinct from new.counts_with
                     or (old.reassigned_at is not null and old.reassigned_at is distinct from new.reassigned_at)
                     or (old.first_paid_at is not null and old.first_paid_at is distinct from new.first_paid_at))
  execute function forbid_binding_change();

-- The first one is that of the binding; a later one counts for payments only once the binding says so.
create function check_new_manual_attribution() returns trigger language plpgsql as $$
begin
  if not exists (
    select from bindings b
      join apps a on a.id = b.app_id
      left join attributions t on t.id = new.attribution_id
     where b.id = new.binding_id and a.account_id = new.account_id
       and (new.attribution_id is null or t.match_method = 'manual')
       and case when new.position = 0 then b.attribution_id = new.attribution_id else b.reassigned_at is not null end
  ) then
    raise exception 'manual attribution % does not fit its user', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger manual_attributions_check before insert on manual_attributions
  for each row execute function check_new_manual_attribution();

-- The attribution of a binding for payments of an instant. Null: nobody's.
create function attribution_at(b bindings, at timestamptz) returns text language sql stable parallel safe as $$
  select case when b.reassigned_at is null then b.attribution_id::text else (
    select x.attribution_id
      from (select m.attribution_id::text, m.effective_from, m.position from manual_attributions m
             where m.binding_id = b.id and m.position > 0 and m.effective_from <= at
            union all
            select b.attribution_id::text, '-infinity', 0) x
     order by x.effective_from desc, x.position desc limit 1) end
$$;

-- A transfer passes on what counts for the giver when it happens.
create or replace function binding_of_giver(of_app app_id, receiver text, of_attribution attribution_id) returns text language sql stable as $$
  select min(coalesce(b.counts_with, b.id::text))
    from user_transfers r
    join user_transfers g on g.event_id = r.event_id and g.app_id = r.app_id and g.role = 'giver'
    join bindings b on b.app_id = g.app_id and b.customer_user_id = g.customer_user_id
   where r.app_id = of_app and r.customer_user_id = receiver and r.role = 'receiver' and b.customer_user_id <> receiver
     and of_attribution in (b.attribution_id, attribution_at(b, now()))
$$;

-- The attribution of a payment whose user was given to another creator before. Null: that of its binding.
alter table payments
  add column attribution_id text collate "C",
  add constraint attribution_needs_a_binding check (attribution_id is null or binding_id is not null) not valid,
  add constraint payment_has_its_attribution foreign key (app_id, attribution_id) references attributions (app_id, id) not valid;

create function forbid_attribution_change() returns trigger language plpgsql as $$
begin
  raise exception 'payment % keeps the attribution that it earned through', old.id using errcode = 'integrity_constraint_violation';
end $$;
create trigger payments_attribution_immutable before update of attribution_id on payments
  for each row when (old.binding_id is not null and old.attribution_id is distinct from new.attribution_id)
  execute function forbid_attribution_change();

-- A process of an earlier version does not know manual attributions. What it attributes against one fails, and is retried until this
-- version makes it. Another row of the same payment may have been attributed before: it passes on what it has.
create function check_manual_attribution() returns trigger language plpgsql as $$
declare
  is_of_binding boolean;
begin
  -- Nearly every payment belongs to the creator of its binding. That takes a quarter of the time of the whole question.
  select b.reassigned_at is null and (t.match_method <> 'manual' or new.occurred_at >= t.touched_at) into is_of_binding
    from bindings b join attributions t on t.id = b.attribution_id where b.id = new.binding_id;
  if is_of_binding and new.attribution_id is null then
    return null;
  end if;
  if exists (
    select from bindings b
      join attributions t on t.id = b.attribution_id
     where b.id = new.binding_id
       and (attribution_at(b, new.occurred_at) is distinct from coalesce(new.attribution_id, b.attribution_id::text)
            or b.reassigned_at is null and t.match_method = 'manual' and new.occurred_at < t.touched_at)
       and not exists (
         select from same_payment(new.app_id, new.environment, new.store, array[new.ref]) q
          where q.id <> new.id and q.binding_id = new.binding_id)
  ) then
    raise exception 'payment % belongs to another creator, or to nobody', new.id
      using errcode = 'integrity_constraint_violation', constraint = 'manual_attributions_are_followed';
  end if;
  return null;
end $$;
create trigger payments_follow_manual_attributions after update of binding_id on payments
  for each row when (old.binding_id is null and new.binding_id is not null) execute function check_manual_attribution();

-- A person who attributes a user adds no install and no identified user.
create or replace function roll_up_attribution() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, installs)
  select new.app_id, new.affiliate_id, new.link_id, rollup_bucket(new.first_open_at), 1 where new.device_id is not null;
  return null;
end $$;

create or replace function roll_up_binding() returns trigger language plpgsql as $$
begin
  insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, identified)
  select new.app_id, affiliate_id, link_id, rollup_bucket(new.identified_at), 1
    from attributions where id = new.attribution_id and device_id is not null;
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
     JOIN attributions a ON (((a.id)::text = (b.attribution_id)::text)))
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
