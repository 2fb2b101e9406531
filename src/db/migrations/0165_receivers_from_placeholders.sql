-- 0046 counted those who had got purchases by a transfer from a placeholder with its binding, so strangers as one person. They are counted alone
-- again, unless their payments were numbered together already.
create or replace function forbid_binding_change() returns trigger language plpgsql as $$
declare
  edited bindings := new;
begin
  edited.counts_with := old.counts_with;
  if edited is not distinct from old and new.counts_with is null then
    return new;
  end if;
  raise exception 'the binding of a user cannot be changed' using errcode = 'integrity_constraint_violation';
end $$;

update bindings b set counts_with = null
  from bindings root
 where root.id = b.counts_with and root.key_source is null and not is_somebody(root.customer_user_id)
   and not exists (select from payment_numbers n where n.subject_id = root.id);

-- As before.
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
