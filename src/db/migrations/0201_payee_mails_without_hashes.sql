-- The row of a mail to a former address has a number, not a hash of the address, which would be kept longer than the address.
create or replace function mail_changed_payee() returns trigger language plpgsql as $$
declare
  present text := (select email from affiliates where app_id = new.app_id and id = new.affiliate_id);
  is_one_of_many boolean := exists (select from payees
                                     where app_id = new.app_id and affiliate_id = new.affiliate_id and version = new.version - 5
                                       and set_at > new.set_at - interval '1 hour');
  waits_until timestamptz := (select min(next_attempt_at) from emails
                               where affiliate_id = new.affiliate_id and kind = 'payee_changed' and created_at > now() - interval '1 hour'
                                 and ended_at is null and attempts = 0 and next_attempt_at > now());
  due timestamptz := case when is_one_of_many then coalesce(waits_until, now() + interval '1 hour') else now() end;
begin
  if waits_until is not null then
    update emails
       set status = 'skipped', last_problem = 'Another payee was set within the hour.', ended_at = now(), next_attempt_at = null, relay_at = null
     where affiliate_id = new.affiliate_id and kind = 'payee_changed' and created_at > now() - interval '1 hour'
       and ended_at is null and attempts = 0 and next_attempt_at > now();
  end if;
  if length(present) between 3 and 320 then
    insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient, next_attempt_at, relay_at)
    values (new_email_id(), new.app_id, new.affiliate_id, 'payee_changed', new.id, present, due, due)
    on conflict (app_id, kind, subject_id) do nothing;
  else
    perform queue_email(new.app_id, new.affiliate_id, 'payee_changed', new.id);
  end if;
  insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient, next_attempt_at, relay_at)
  select new_email_id(), new.app_id, new.affiliate_id, 'payee_changed', new.id || '/' || row_number() over (order by f.replaced_at, f.address),
         f.address, due, due
    from (select distinct on (lower(address)) address, replaced_at from former_addresses
           where affiliate_id = new.affiliate_id and replaced_at > now() - interval '7 days'
             and lower(address) is distinct from lower(present) and length(address) between 3 and 320
           order by lower(address), replaced_at desc) f
  on conflict (app_id, kind, subject_id) do nothing;
  return null;
end $$;
