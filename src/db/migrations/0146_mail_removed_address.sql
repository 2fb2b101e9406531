-- A removed address gets a mail, too, when another one takes its place within a week. Otherwise a removal hides the change from its owner.
create or replace function mail_former_address() returns trigger language plpgsql as $$
declare
  former text := coalesce(old.email, (select f.address from former_addresses f
                                       where f.affiliate_id = new.id and f.replaced_at > now() - interval '7 days'
                                       order by f.replaced_at desc, f.address limit 1));
begin
  if former is null or lower(former) = lower(new.email) or length(former) not between 3 and 320 then
    return null;
  end if;
  -- Bounds what a founder can have mailed to addresses of others.
  if (select count(*) from (select from emails e where e.affiliate_id = new.id and e.kind = 'address_changed'
                               and e.created_at > now() - interval '1 day' limit 5) m) < 5 then
    insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient)
    select id, new.app_id, new.id, 'address_changed', id, former from new_email_id() id;
  end if;
  return null;
end $$;

drop trigger affiliates_mail_former_address on affiliates;
create trigger affiliates_mail_former_address after update of email on affiliates
  for each row when (new.email is not null and lower(old.email) is distinct from lower(new.email)) execute function mail_former_address();
