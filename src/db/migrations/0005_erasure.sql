-- Erasure of a person: what was erased, and the keyed hashes by which later facts of the person are recognised.
-- docs/erasure.md gives the reasons. The statements that erase are in src/db/erasures.ts.

create domain erasure_id as text collate "C" check (value ~ '^ers_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- The key of the hashes below, encrypted with SECRETS_KEY. The first process that needs it generates it.
create table erasure_key (
  only_row          boolean primary key default true check (only_row),
  ciphertext        bytea not null,
  encryption_key_id text not null
);

-- One row per erased user id. It states what was done, never whom it was done to.
create table erasures (
  id              erasure_id primary key,
  app_id          app_id not null references apps (id),
  -- The keyed hash of the user id: the same request finds its row again.
  user_hash       bytea not null check (length(user_hash) = 32),
  -- The random text that replaces the user id.
  pseudonym       text not null unique check (pseudonym ~ '^erased:[0-9A-Za-z_-]{22}$'),
  -- The account key that requested it. Null for the command line.
  key_id          key_id references account_keys (id),
  requested_at    timestamptz not null default now(),
  -- When the search began again: after the same request, or after an event that tied another key to the person.
  reopened_at     timestamptz,
  -- Whether bodies are compared with the keyed hashes: when a request comes again, the keys themselves are not known any more.
  by_hash         boolean not null default false,
  -- Raised when the search begins again. What a step has found before that does not move the new search on.
  revision        integer not null default 1,
  -- The search: the last delivery that was examined, and the end of the range. A second search begins at settles_at and covers
  -- what was being written while the first one ran.
  scanned_at      timestamptz,
  scanned_id      delivery_id,
  settles_at      timestamptz,
  -- Deliveries that name the person and have no outcome yet.
  waiting         text[] not null default '{}',
  -- What was erased, by kind.
  counts          jsonb not null default '{}',
  relayed_at      timestamptz,
  finished_at     timestamptz,
  unique (app_id, user_hash),
  unique (app_id, id),
  check ((scanned_at is null) = (scanned_id is null))
);
create index erasures_open on erasures ((coalesce(relayed_at, requested_at))) where finished_at is null;
create trigger erasures_no_delete before delete or truncate on erasures for each statement execute function forbid_change();

-- What an erasure in progress searches for, encrypted with SECRETS_KEY. The end of the erasure removes the rows.
create table erasure_subjects (
  erasure_id        erasure_id not null references erasures (id),
  -- The provider of a key. Empty for the user id.
  source            text not null,
  hash              bytea not null check (length(hash) = 32),
  ciphertext        bytea not null,
  encryption_key_id text not null,
  primary key (erasure_id, source, hash)
);

-- Keyed hashes of erased identifiers: user ids, keys of providers, and references of payments. The pseudonym replaces the
-- identifier in facts that arrive later. A reference has none: refunds must find the payment, so it stays as it is. A text
-- that is both a user id and a key has a row of each kind.
create table erased_identifiers (
  app_id     app_id not null,
  hash       bytea not null check (length(hash) = 32),
  erasure_id erasure_id not null,
  kind       text not null check (kind in ('user', 'key', 'ref')),
  pseudonym  text check (pseudonym ~ '^erased:[0-9A-Za-z_-]{22}$'),
  primary key (app_id, hash, kind),
  foreign key (app_id, erasure_id) references erasures (app_id, id),
  check ((kind = 'ref') = (pseudonym is null))
);
create index erased_identifiers_by_pseudonym on erased_identifiers (app_id, pseudonym) where pseudonym is not null;
create trigger erased_identifiers_no_delete before delete or truncate on erased_identifiers
  for each statement execute function forbid_change();

-- Names the key of a body that is stored encrypted, because it names an erased person. It is removed with its outcome.
alter table delivery_bodies add column encryption_key_id text;

---------------------------------------------------------------------------------------------------------------------
-- The one edit that the guards of money allow: a user id becomes the pseudonym of an erasure, and nothing else changes

-- Whether a text replaces an erased user id of the app. What follows `~` keeps two bindings of one person apart.
create function is_pseudonym(of_app app_id, candidate text) returns boolean language sql stable as $$
  select exists (select from erased_identifiers e
                  where e.app_id = of_app and e.pseudonym = split_part(candidate, '~', 1) and e.kind = 'user')
$$;

create or replace function forbid_binding_change() returns trigger language plpgsql as $$
declare
  edited bindings := new;
begin
  edited.customer_user_id := old.customer_user_id;
  if edited is not distinct from old and is_pseudonym(new.app_id, new.customer_user_id) then
    return new;
  end if;
  raise exception 'the binding of a user cannot be changed' using errcode = 'integrity_constraint_violation';
end $$;

create or replace function guard_commission_update() returns trigger language plpgsql as $$
declare
  edited commissions := new;
begin
  edited.customer_user_id := old.customer_user_id;
  if edited is not distinct from old and is_pseudonym(new.app_id, new.customer_user_id) then
    return new;
  end if;
  if old.status = 'paid' then
    raise exception 'commission % is paid and cannot be changed', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'matured' and new.status = 'pending' then
    raise exception 'commission % has matured and cannot become pending again', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  edited := new;
  edited.status := old.status;
  edited.matured_at := old.matured_at;
  edited.paid_at := old.paid_at;
  edited.payout_id := old.payout_id;
  if edited is distinct from old then
    raise exception 'commission % cannot be edited: append a reversal', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;

---------------------------------------------------------------------------------------------------------------------
-- Retention

-- Clicks lose the hash of the address with their User-Agent from now on: all are examined once more.
update retention_progress set position = null where kind = 'user_agents';
