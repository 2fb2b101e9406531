-- Who confirms an address by the right to pay has set it: the payee that its codes set is theirs, too.
create or replace function note_email_change() returns trigger language plpgsql as $$
declare
  may_pay boolean := coalesce(current_setting('tributary.confirms_email', true), '') = 'on';
  actor text := nullif(current_setting('tributary.actor', true), '')::jsonb->>'keyId';
begin
  if tg_op = 'INSERT' then
    new.email_set_at := now();
    new.email_set_by := null;
    new.email_confirmed := null;
  elsif new.email is distinct from old.email then
    new.email_set_at := now();
    new.email_set_by := actor;
    new.email_confirmed := may_pay;
  elsif may_pay and old.email_confirmed is false then
    new.email_set_by := actor;
    new.email_confirmed := true;
  end if;
  return new;
end $$;
