-- A transfer may make the one with whom a new binding counts a member of another person at this moment. The new binding waits for that, and
-- counts with whom the other one does: two members of one person would be numbered apart otherwise. A transfer that comes after it changes
-- nothing (`forbid_binding_change`).
create or replace function count_with_giver() returns trigger language plpgsql as $$
declare
  root text;
begin
  if new.counts_with is null and exists (
       select from user_transfers
        where app_id = new.app_id and customer_user_id = new.customer_user_id and role = 'receiver') then
    new.counts_with := binding_of_giver(new.app_id, new.customer_user_id, new.attribution_id);
  end if;
  if new.counts_with is not null then
    select coalesce(b.counts_with, b.id::text) into root from bindings b where b.id = new.counts_with for no key update;
    new.counts_with := coalesce(root, new.counts_with);
  end if;
  return new;
end $$;
