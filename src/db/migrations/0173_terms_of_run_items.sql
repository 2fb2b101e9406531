-- The terms of a draft hold by the database, too: an item of a run is not below its minimum, and its payee does not wait. The code compares
-- milliseconds, so a payee counts that counts within that of the draft.
create function item_keeps_terms_of_run() returns trigger language plpgsql as $$
declare
  run payout_runs := (select r from payout_runs r where r.id = new.run_id);
  payee payees := (select y from payees y
                    where y.app_id = new.app_id and y.affiliate_id = new.affiliate_id and y.version = new.payee_version);
begin
  if run.kind = 'pay' and new.expected_cents < run.minimum_cents then
    raise exception 'payout run %: an item is below the minimum', new.run_id using errcode = '23000';
  end if;
  if payee.counts_from >= run.as_of + interval '1 millisecond' then
    raise exception 'payout run %: a payee waits', new.run_id using errcode = '23000';
  end if;
  if coalesce(payee.method, 'none') = 'none' and not run.includes_without_payee then
    raise exception 'payout run %: creators without a payee are left out', new.run_id using errcode = '23000';
  end if;
  return new;
end $$;

create trigger payout_run_items_terms before insert on payout_run_items for each row execute function item_keeps_terms_of_run();
