-- A user who was identified before a transfer arrives goes on with the numbers of the giver, too, unless a payment of the user was attributed before.
create or replace function forbid_binding_change() returns trigger language plpgsql as $$
declare
  edited bindings := new;
begin
  edited.customer_user_id := old.customer_user_id;
  if edited is not distinct from old and is_pseudonym(new.app_id, new.customer_user_id) then
    return new;
  end if;
  edited := new;
  edited.counts_with := old.counts_with;
  if edited is not distinct from old and old.counts_with is null then
    if new.counts_with <> old.id and old.first_paid_at is null and old.key_source is null
       and not exists (select from bindings b where b.counts_with = old.id)
       and not exists (select from payment_numbers n where n.subject_id = old.id) then
      return new;
    end if;
    -- It comes too late, and changes nothing.
    return null;
  end if;
  raise exception 'the binding of a user cannot be changed' using errcode = 'integrity_constraint_violation';
end $$;
