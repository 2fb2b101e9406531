-- An evaluation sets the sums of its payment when it locks the row. The trigger of commissions updated the row a second time, and Postgres
-- checked its foreign keys once more.

create or replace function sums_of_commissions(of_payment text) returns table (earned numeric, reversed numeric, corrected numeric)
language sql stable parallel safe as $$
  select coalesce(sum(c.amount_cents) filter (where c.kind = 'earning'), 0),
         coalesce(-sum(c.amount_cents) filter (where c.kind = 'reversal'), 0),
         coalesce(-sum(c.amount_cents) filter (where c.kind = 'correction'), 0)
    from commissions c where c.payment_id = of_payment
$$;

-- Sets the sums only if the statement that inserted the commission did not: that of an older process, or a repair by hand.
create or replace function add_to_payment() returns trigger language plpgsql as $$
begin
  if exists (select from payments p, sums_of_commissions(new.payment_id) s
              where p.id = new.payment_id and (p.earned_cents, p.reversed_cents, p.corrected_cents) <> (s.earned, s.reversed, s.corrected)) then
    -- With the lock, the next statement sees what another transaction has just added.
    perform from payments p where p.id = new.payment_id for no key update;
    update payments p set earned_cents = s.earned, reversed_cents = s.reversed, corrected_cents = s.corrected
      from sums_of_commissions(new.payment_id) s where p.id = new.payment_id;
  end if;
  return null;
end $$;

-- Runs after the statement, which may have inserted the commissions that the sums follow.
create or replace function guard_payment_sums() returns trigger language plpgsql as $$
declare
  s record;
begin
  select * into s from sums_of_commissions(new.id);
  if (new.earned_cents, new.reversed_cents, new.corrected_cents) <> (s.earned, s.reversed, s.corrected) then
    raise exception 'the sums of payment % cannot be changed: they follow its commissions', new.id
      using errcode = 'integrity_constraint_violation', table = 'payments', constraint = 'payments_guard_sums',
        detail = format('%s earned, %s reversed and %s corrected, and its commissions say %s, %s and %s.', new.earned_cents,
                        new.reversed_cents, new.corrected_cents, s.earned, s.reversed, s.corrected),
        hint = 'If they differed before, "ledger check" names the payment, and an update to the sums of its commissions is permitted.';
  end if;
  return null;
end $$;

create or replace trigger payments_guard_sums after update of earned_cents, reversed_cents, corrected_cents on payments
  for each row when (old.earned_cents <> new.earned_cents or old.reversed_cents <> new.reversed_cents
                     or old.corrected_cents <> new.corrected_cents)
  execute function guard_payment_sums();
