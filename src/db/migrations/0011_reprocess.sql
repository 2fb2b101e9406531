-- Reprocessing: stored deliveries that are run again through today's normalising and attribution (`src/db/reprocess.ts`).

create domain reprocess_run_id as text collate "C" check (value ~ '^rpr_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- A request of the operator; its workflow learns the id and nothing else. Kept for ever: it says why money was appended
-- long after its event.
create table reprocess_runs (
  id          reprocess_run_id primary key,
  app_id      app_id not null references apps (id),
  dry_run     boolean not null,
  -- Which deliveries: this one, or those received in [from_at, to_at).
  delivery_id delivery_id,
  from_at     timestamptz not null,
  to_at       timestamptz not null,
  deliveries  integer not null check (deliveries >= 0),
  -- How far it is: the last delivery that was looked at, and how many were, differ, and were appended to.
  seen_at     timestamptz,
  seen_id     delivery_id,
  seen        integer not null default 0,
  changed     integer not null default 0,
  applied     integer not null default 0,
  -- Why the last try of a page failed; null once one succeeds.
  last_error  text,
  created_at  timestamptz not null default now(),
  relayed_at  timestamptz,
  finished_at timestamptz,
  -- Whether it ends before its time, once what it has begun is done.
  cancelled   boolean not null default false,
  unique (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check ((seen_at is null) = (seen_id is null))
);
create index reprocess_runs_open on reprocess_runs ((coalesce(relayed_at, created_at))) where finished_at is null;

-- What a delivery would change, written down before any of it is applied.
create table reprocess_changes (
  app_id      app_id not null,
  reprocess_run_id   reprocess_run_id not null,
  delivery_id delivery_id not null,
  received_at timestamptz not null,
  changes     jsonb not null check (jsonb_array_length(changes) > 0),
  -- Whether any of it is appended; else it only tells of a difference that stays.
  appends     boolean not null,
  applied_at  timestamptz,
  -- Why it was stopped although the dry run went well.
  refusal     text,
  primary key (reprocess_run_id, delivery_id),
  foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check (applied_at is null or appends)
);
create index reprocess_changes_in_order on reprocess_changes (reprocess_run_id, received_at, delivery_id);

-- What a delivery that is appended to speaks of (event, payments, user keys, users): one that tells of it, and a later one
-- that asks for it builds on it.
create table reprocess_names (
  reprocess_run_id   reprocess_run_id not null,
  delivery_id delivery_id not null,
  name        text not null,
  provides    boolean not null,
  primary key (reprocess_run_id, delivery_id, name),
  foreign key (reprocess_run_id, delivery_id) references reprocess_changes (reprocess_run_id, delivery_id)
);
create index reprocess_names_provided on reprocess_names (reprocess_run_id, name, delivery_id) where provides;

create function guard_reprocess_change() returns trigger language plpgsql as $$
begin
  raise exception 'what reprocess % found is never edited', old.reprocess_run_id using errcode = 'integrity_constraint_violation';
end $$;
create trigger reprocess_changes_guard before update of changes, appends on reprocess_changes
  for each row execute function guard_reprocess_change();
create trigger reprocess_changes_stay before delete or truncate on reprocess_changes
  for each statement execute function forbid_change();
create trigger reprocess_runs_stay before delete or truncate on reprocess_runs for each statement execute function forbid_change();

-- Which reprocess wrote a row of the ledger; null for those that came by themselves.
alter table commissions add column reprocess_run_id reprocess_run_id;
alter table commissions add foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id);
create index commissions_by_reprocess_run on commissions (reprocess_run_id, id) where reprocess_run_id is not null;
alter table revenue_entries add column reprocess_run_id reprocess_run_id;
alter table revenue_entries add foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id);
create index revenue_entries_by_reprocess_run on revenue_entries (reprocess_run_id) where reprocess_run_id is not null;

-- A dry run (`src/db/with-rollback.ts`) is taken back, and with it what it would have added to the sums. It leaves them
-- alone, for their rows are the whole app's and would be locked until its end.
alter function apply_rollup(rollup_delta[]) rename to add_to_rollups;
create function apply_rollup(deltas rollup_delta[]) returns void language plpgsql as $$
begin
  if current_setting('tributary.dry_run', true) = 'on' then return; end if;
  perform add_to_rollups(deltas);
end $$;
