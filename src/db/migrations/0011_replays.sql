-- Replays: stored deliveries that are run again through today's normalising and attribution (`src/db/replays.ts`).

create domain replay_id as text collate "C" check (value ~ '^rpl_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- A request of the operator; its workflow learns the id and nothing else. Kept for ever: it says why money was appended
-- long after its event.
create table replays (
  id          replay_id primary key,
  app_id      app_id not null references apps (id),
  dry_run     boolean not null,
  -- Which deliveries: this one, or those received in [from_at, to_at).
  delivery_id delivery_id,
  from_at     timestamptz not null,
  to_at       timestamptz not null,
  deliveries  integer not null check (deliveries >= 0),
  -- How far it is: the last delivery that was looked at, and how many were.
  seen        integer not null default 0,
  seen_at     timestamptz,
  seen_id     delivery_id,
  created_at  timestamptz not null default now(),
  relayed_at  timestamptz,
  finished_at timestamptz,
  unique (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check ((seen_at is null) = (seen_id is null))
);
create index replays_open on replays ((coalesce(relayed_at, created_at))) where finished_at is null;

-- What a delivery would change, written down before any of it is applied: a replay that dies in between still tells all.
create table replay_changes (
  app_id      app_id not null,
  replay_id   replay_id not null,
  delivery_id delivery_id not null,
  received_at timestamptz not null,
  changes     jsonb not null check (jsonb_array_length(changes) > 0),
  -- Whether any of it is appended; else it only tells of a difference that stays.
  appends     boolean not null,
  applied_at  timestamptz,
  primary key (replay_id, delivery_id),
  foreign key (app_id, replay_id) references replays (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check (applied_at is null or appends)
);
create index replay_changes_in_order on replay_changes (replay_id, received_at, delivery_id);
