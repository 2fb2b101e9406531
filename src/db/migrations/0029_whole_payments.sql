-- A payment that was reported in parts earns on the whole: an invoice, not each payment intent that paid a part of it.

-- Whether no other reference has this one as an alias. An invoice is a root; the payment intents that paid it are its aliases.
create function is_root(p payments) returns boolean language sql stable parallel safe as $$
  select not exists (
    select from payment_aliases l
     where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.alias_ref = p.ref
       and l.payment_ref <> l.alias_ref)
$$;

-- Returns the row of the whole payment that a row belongs to: the root with the largest amount. A duplicate can never count again.
create function whole_payment(of_row payments) returns setof payments language sql stable parallel safe rows 1 as $$
  select p.*
    from same_payment(of_row.app_id, of_row.environment, of_row.store, array[of_row.ref]) p
   where p.duplicate_of is null and is_root(p)
   order by p.amount_minor desc, p.id limit 1
$$;

-- Whether a row is a part of a whole. False if there is no whole.
create function is_part_of(p payments, whole payments) returns boolean language sql immutable parallel safe as $$
  select coalesce(p.currency = whole.currency and p.amount_minor < whole.amount_minor, false)
$$;

-- A correction needs an earning of the same payment that stays: the earlier one, unless one of both is of a part. Then it is the
-- one of the whole. Nothing of the corrected earning remains.
create or replace function check_correction() returns trigger language plpgsql as $$
begin
  if not exists (
    select from commissions k
      join payments kept on kept.id = k.payment_id
      join payments p on p.id = new.payment_id
      left join lateral whole_payment(p) whole on true
     where k.id = new.duplicate_of_commission_id and k.kind = 'earning'
       and case when is_part_of(p, whole) <> is_part_of(kept, whole) then is_part_of(p, whole)
                else k.id < new.reverses_commission_id end
       and kept.id <> p.id and kept.app_id = p.app_id and kept.environment = p.environment and kept.store = p.store
       and p.earned_cents = p.reversed_cents + p.corrected_cents
       and kept.ref in (select ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]))
  ) then
    raise exception 'correction % needs an earlier earning of the same payment or one of the whole payment, and must take back the rest of its own', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;

-- An alias may show that a row that was attributed is a part of another row, or that two attributed rows are one payment. As before,
-- the mark makes the relay evaluate them if the evaluation of the alias's event never ran.
create or replace function mark_for_recheck() returns trigger language plpgsql as $$
begin
  update payments p set recheck_since = now(), version = p.version + 1
   where p.id = any(array(
     select q.id
       from payments q
      where q.id = any(array(
        select unnest(tied.ids)
          from added a
         cross join lateral (
           select array_agg(x.id) as ids, count(*) filter (where x.binding_id is not null and x.duplicate_of is null) as attributed
             from same_payment(a.app_id, a.environment, a.store, array[a.alias_ref]) x) tied
         where a.environment = 'production' and tied.attributed > 0 and cardinality(tied.ids) > 1))
      order by q.id for update));
  return null;
end $$;
