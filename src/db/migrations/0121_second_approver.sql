-- The key that has changed the address of a creator last: a code that lets the creator set a payee is mailed there. Null: the creator was
-- added with it, when nothing was owed yet.
alter table affiliates add column email_set_by text collate "C";
-- The same at the time when the creator set this payee with such a code.
alter table payees add column address_set_by text collate "C";

create or replace function note_email_change() returns trigger language plpgsql as $$
declare
  may_pay boolean := coalesce(current_setting('tributary.confirms_email', true), '') = 'on';
begin
  if tg_op = 'INSERT' then
    new.email_set_at := now();
    new.email_set_by := null;
    new.email_confirmed := null;
  elsif new.email is distinct from old.email then
    new.email_set_at := now();
    new.email_set_by := nullif(current_setting('tributary.actor', true), '')::jsonb->>'keyId';
    new.email_confirmed := may_pay;
  elsif may_pay and old.email_confirmed is false then
    new.email_confirmed := true;
  end if;
  return new;
end $$;

create function note_address_of_payee() returns trigger language plpgsql as $$
begin
  select f.email_set_by into new.address_set_by from affiliates f where f.id = new.affiliate_id and new.set_by is null;
  return new;
end $$;
create trigger payees_address before insert on payees for each row execute function note_address_of_payee();

-- Whether a key has drafted a run, has set a payee to whom it pays or the address whose code set one, or has changed the address of a
-- creator within the last seven days.
create or replace function has_part_in_run(run payout_runs, key text) returns boolean language sql stable as $$
  select run.key_id = key
      or exists (
           select from payout_run_items i
             join payees y on y.app_id = i.app_id and y.affiliate_id = i.affiliate_id and y.version = i.payee_version
            where i.run_id = run.id and (y.set_by = key or y.address_set_by = key))
      or exists (
           select from payout_run_items i
             join affiliates f on f.id = i.affiliate_id
            where i.run_id = run.id and f.email_set_by = key and f.email_set_at > now() - interval '7 days')
$$;

-- A single export has no second approver.
create function refuse_unapproved_export() returns trigger language plpgsql as $$
begin
  if (select a.payout_approval from apps a where a.id = new.app_id) = 'another_key'
     and not exists (select from payout_run_items i where i.request_id = new.id) then
    raise exception 'request % needs the approval of another key, which payout runs have', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_requests_unapproved before update on payout_requests
  for each row when (old.status = 'open' and new.status = 'paid') execute function refuse_unapproved_export();
