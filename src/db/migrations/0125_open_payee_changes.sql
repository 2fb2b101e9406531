-- A code approves one step: from the version that was the latest when the creator asked to the one that the creator wants. A version that
-- somebody else sets meanwhile ends it, and so does a block: a founder who corrects a payee or stops payouts has the last word. Triggers, so
-- that this holds for every way of setting a payee.
alter table payee_changes
  -- The latest version when it was asked for. 0: there was none. Null: an earlier version of the service has written it.
  add column latest_version integer check (latest_version >= 0);

create function note_latest_payee() returns trigger language plpgsql as $$
begin
  new.latest_version := coalesce((select version from payees where app_id = new.app_id and affiliate_id = new.affiliate_id
                                   order by version desc limit 1), 0);
  return new;
end $$;
create trigger payee_changes_version before insert on payee_changes for each row execute function note_latest_payee();

create function end_payee_changes() returns trigger language plpgsql as $$
begin
  update payee_changes set ended_at = now(), ciphertext = null, encryption_key_id = null
   where affiliate_id = new.affiliate_id and ended_at is null;
  return null;
end $$;
create trigger payees_end_changes after insert on payees for each row execute function end_payee_changes();
create trigger payout_blocks_end_changes after insert on payout_blocks
  for each row when (new.state = 'blocked') execute function end_payee_changes();

create or replace function require_confirmed_payee() returns trigger language plpgsql as $$
begin
  if not exists (select from payee_changes c
                  where c.payee_id = new.id and c.affiliate_id = new.affiliate_id and c.app_id = new.app_id and c.method = new.method
                    and c.ended_at = now() and coalesce(c.latest_version, new.version - 1) = new.version - 1) then
    raise exception 'the creator % has not confirmed the payee %', new.affiliate_id, new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
