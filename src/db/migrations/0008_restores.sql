-- A database that was restored to an earlier moment has forgotten the payouts after it, whose money was sent. It would pay
-- their commissions again. So no payout is added until the operator has recorded them, or has stated that none is missing.

-- Changes when the database is restored to a moment, promoted from a standby, upgraded by pg_upgrade, or loaded again, on this server
-- or another one. A copy of the files and a snapshot of a disk keep it. The service must read what the owner stored, so the function
-- runs with the owner's rights.
create function database_history() returns text language plpgsql security definer set search_path from current as $$
declare
  of_server text;
begin
  begin
    of_server := (select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8);
  exception when insufficient_privilege or undefined_function or feature_not_supported or object_not_in_prerequisite_state then
    -- A managed service may refuse the question.
    of_server := 'unknown';
  end;
  -- A load creates the table again, and a copy by "create database" gets another number.
  return of_server || '/' || (select oid from pg_database where datname = current_database()) || '.' || 'installation'::regclass::oid;
end $$;

-- The history that may add payouts. Another text stops them.
alter table installation add column history text not null default database_history();

-- When the payout was recorded from its CSV: another history of this database had paid it.
alter table payouts add column recorded_at timestamptz;

create function require_known_history() returns trigger language plpgsql as $$
begin
  if exists (select from installation where history <> database_history()) then
    raise exception 'payouts are stopped: the database was restored or copied, and may have forgotten some'
      using errcode = 'object_not_in_prerequisite_state', hint = 'record them with payouts record, then run payouts resume';
  end if;
  return new;
end $$;
create trigger payouts_known_history before insert on payouts
  for each row when (new.recorded_at is null) execute function require_known_history();

create or replace function guard_payout_update() returns trigger language plpgsql as $$
begin
  if (old.csv_sha256 is not null and (old.csv_sha256, old.csv_gzip) is distinct from (new.csv_sha256, new.csv_gzip))
     or (old.id, old.app_id, old.affiliate_id, old.affiliate_name, old.item_count, old.total_cents, old.created_at, old.recorded_at)
        is distinct from
        (new.id, new.app_id, new.affiliate_id, new.affiliate_name, new.item_count, new.total_cents, new.created_at,
         new.recorded_at) then
    raise exception 'payout % cannot be edited', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
