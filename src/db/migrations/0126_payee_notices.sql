-- The mail about a version of the payee goes to the address of the moment at which the version is set, and to those that were replaced within
-- the seven days before. A caller who sets a payee could otherwise remove the address of the creator for a moment, or replace it before.
create table former_addresses (
  app_id       app_id not null,
  affiliate_id affiliate_id not null,
  address      text not null,
  -- Since when it was the address of the creator, and until when.
  held_since   timestamptz not null,
  replaced_at  timestamptz not null,
  primary key (affiliate_id, address),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create index former_addresses_by_end on former_addresses (replaced_at);

create function keep_former_address() returns trigger language plpgsql as $$
begin
  insert into former_addresses (app_id, affiliate_id, address, held_since, replaced_at)
  values (new.app_id, new.id, old.email, old.email_set_at, now())
  on conflict (affiliate_id, address) do update
    set held_since = least(former_addresses.held_since, excluded.held_since), replaced_at = excluded.replaced_at;
  delete from former_addresses where affiliate_id = new.id and replaced_at <= now() - interval '7 days';
  -- Five, so that nobody can have mails sent to many addresses of others. Those that were held the longest: no further changes take their place.
  delete from former_addresses
   where affiliate_id = new.id
     and address in (select address from former_addresses where affiliate_id = new.id order by held_since, address offset 5);
  return null;
end $$;
create trigger affiliates_keep_former_address after update of email on affiliates
  for each row when (old.email is not null and old.email is distinct from new.email) execute function keep_former_address();

alter table emails drop constraint email_has_reader;
alter table emails
  -- A mail about a payee has its recipient. Without one, an earlier version of the service has written it, or the creator had no address.
  add constraint email_has_reader check
    ((affiliate_id is null) = (kind in ('alert_opened', 'alert_closed', 'run_drafted', 'weekly_report', 'member_invitation', 'member_sign_in'))
     and case kind when 'payee_changed' then true
                   else (recipient is null) = (kind in ('invitation', 'payee_code', 'payout_sent', 'member_invitation', 'member_sign_in')) end) not valid;

create or replace function mail_changed_payee() returns trigger language plpgsql as $$
declare
  present text := (select email from affiliates where app_id = new.app_id and id = new.affiliate_id);
begin
  if length(present) between 3 and 320 then
    insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient)
    values (new_email_id(), new.app_id, new.affiliate_id, 'payee_changed', new.id, present)
    on conflict (app_id, kind, subject_id) do nothing;
  else
    perform queue_email(new.app_id, new.affiliate_id, 'payee_changed', new.id);
  end if;
  insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient)
  select new_email_id(), new.app_id, new.affiliate_id, 'payee_changed', new.id || '/' || left(md5(lower(f.address)), 16), f.address
    from former_addresses f
   where f.affiliate_id = new.affiliate_id and f.replaced_at > now() - interval '7 days'
     and lower(f.address) is distinct from lower(present) and length(f.address) between 3 and 320
  on conflict (app_id, kind, subject_id) do nothing;
  return null;
end $$;
