-- Nearly no user receives purchases of another one, so the index is asked before the question whose binding the user counts with.
create or replace function count_with_giver() returns trigger language plpgsql as $$
begin
  if new.counts_with is null and exists (
       select from user_transfers
        where app_id = new.app_id and customer_user_id = new.customer_user_id and role = 'receiver') then
    new.counts_with := binding_of_giver(new.app_id, new.customer_user_id, new.attribution_id);
  end if;
  return new;
end $$;
