-- The removal of a creator ends its codes; one that is registered after it would begin to count when the creator comes back.
create function check_new_code() returns trigger language plpgsql as $$
declare
  creator_status text;
begin
  -- Waits for a removal that is not committed.
  select status into creator_status from affiliates where app_id = new.app_id and id = new.affiliate_id for share;
  if creator_status = 'removed' then
    raise exception 'creator % was removed and gets no code', new.affiliate_id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger codes_check before insert on codes for each row execute function check_new_code();
