-- A resend run is stopped before it decides about its items, or not at all: what is in its files can't be taken out of them. The statement
-- that stops it may have waited for the decision since it read the items.
create function refuse_stop_of_decided_run() returns trigger language plpgsql as $$
begin
  if exists (select from payout_run_items i where i.run_id = new.id and i.resend_result is not null) then
    raise exception 'payout run % has decided about its items and cannot be stopped', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_runs_stop_undecided before update of stopped_at on payout_runs
  for each row when (old.stopped_at is null and new.stopped_at is not null) execute function refuse_stop_of_decided_run();

-- A stopped run goes on with no further item. Money is sent again under the lock of the creator's payouts, and not while they are blocked.
-- Fires before payout_run_items_change, in the order of the names, so that the payee is compared under the lock, too.
create function guard_item_of_run() returns trigger language plpgsql as $$
declare
  run payout_runs;
begin
  select * into run from payout_runs where id = new.run_id for share;
  if run.stopped_at is not null then
    raise exception 'payout run % was stopped', new.run_id using errcode = 'integrity_constraint_violation';
  end if;
  if new.resend_result = 'resent' then
    perform pg_advisory_xact_lock(hashtextextended('payout of ' || new.affiliate_id::text, 0));
    if are_payouts_blocked(new.affiliate_id) then
      raise exception 'payouts of % are blocked', new.affiliate_id
        using errcode = 'object_not_in_prerequisite_state', hint = 'lift the block first';
    end if;
  end if;
  return new;
end $$;
create trigger payout_run_items_begin before update on payout_run_items
  for each row when (old.request_id is null and new.request_id is not null or old.resend_result is null and new.resend_result is not null)
  execute function guard_item_of_run();
