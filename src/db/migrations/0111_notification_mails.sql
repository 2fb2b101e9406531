-- Mails to the people who run an app, and to the former address of a creator.
alter table emails
  alter column affiliate_id drop not null,
  -- The address, where it is not that of the creator. Only its beginning and its domain are kept when the mail has ended.
  add column recipient text check (length(recipient) between 3 and 320);
alter table emails drop constraint emails_kind_check, drop constraint email_to_one_person;
alter table emails
  add constraint emails_kind_check check
    (kind in ('invitation', 'payee_code', 'payee_changed', 'payout_sent', 'address_changed', 'alert_opened', 'alert_closed', 'run_drafted',
              'weekly_report', 'member_invitation', 'member_sign_in')) not valid,
  add constraint email_of_app_or_member check
    ((member_id is not null) = (kind in ('member_invitation', 'member_sign_in'))
     and (account_id is null) = (member_id is null) and (app_id is null) = (member_id is not null)) not valid,
  add constraint email_has_reader check
    ((affiliate_id is null) = (kind in ('alert_opened', 'alert_closed', 'run_drafted', 'weekly_report', 'member_invitation', 'member_sign_in'))
     and (recipient is null) = (kind not in ('address_changed', 'alert_opened', 'alert_closed', 'run_drafted', 'weekly_report'))) not valid;

create function mask_ended_recipient() returns trigger language plpgsql as $$
begin
  if new.recipient is distinct from old.recipient then
    raise exception 'mail % has another recipient', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if new.ended_at is not null then
    new.recipient := left(old.recipient, 1) || '•••' || substring(old.recipient from '@[^@]*$');
  end if;
  return new;
end $$;
create trigger emails_recipient before update on emails for each row when (old.recipient is not null) execute function mask_ended_recipient();

-- Writes a mail for each address of an app, once for a fact: the fact and a part of the hash of the address are its subject. Returns how many.
create function queue_notification(of_app app_id, of_kind text, subject text) returns bigint language sql volatile as $$
  with written as (
    insert into emails (id, app_id, kind, subject_id, recipient)
    select new_email_id(), a.id, of_kind, subject || '/' || left(md5(lower(address)), 16), address
      from apps a cross join unnest(a.notification_emails) address
     where a.id = of_app
    on conflict (app_id, kind, subject_id) do nothing
    returning id
  )
  select count(*) from written
$$;

create function mail_drafted_run() returns trigger language plpgsql as $$
begin
  perform queue_notification(new.app_id, 'run_drafted', new.id);
  return null;
end $$;
create trigger payout_runs_mail after insert on payout_runs for each row when (new.scheduled_month is not null) execute function mail_drafted_run();

-- The number of a mailed opening among those of the same rule and subject within a day: the third one is the last, and its end is not mailed.
-- Null: it is not mailed.
alter table alerts add column mail_number smallint check (mail_number between 1 and 3);

create function number_alert_mail() returns trigger language plpgsql as $$
declare
  mailed integer;
begin
  new.mail_number := null;
  -- The draft of a schedule has a mail of its own.
  if (new.rule = 'draft_waiting' and new.facts ? 'scheduledMonth')
     or not exists (select from apps a where a.id = new.app_id and a.notification_emails is not null) then
    return new;
  end if;
  select count(*) into mailed
    from (select from alerts a
           where a.app_id = new.app_id and a.rule = new.rule and a.subject = new.subject and a.closed_at > new.opened_at - interval '1 day'
             and a.opened_at > new.opened_at - interval '1 day' and a.mail_number is not null limit 3) m;
  if mailed < 3 then
    new.mail_number := mailed + 1;
  end if;
  return new;
end $$;
create trigger alerts_mail_number before insert on alerts for each row execute function number_alert_mail();

create function mail_alert() returns trigger language plpgsql as $$
begin
  perform queue_notification(new.app_id, case tg_op when 'INSERT' then 'alert_opened' else 'alert_closed' end, new.id);
  return null;
end $$;
create trigger alerts_mail_opened after insert on alerts for each row when (new.mail_number is not null) execute function mail_alert();
create trigger alerts_mail_closed after update on alerts for each row when (new.mail_number < 3) execute function mail_alert();

-- The reports that were written, each once for an app and week.
create table weekly_reports (
  app_id     app_id not null references apps (id),
  -- The Monday after the week.
  monday     date not null check (extract(isodow from monday) = 1),
  created_at timestamptz not null default now(),
  primary key (app_id, monday)
);
create trigger weekly_reports_append_only before update or delete or truncate on weekly_reports for each statement execute function forbid_change();

-- The former address of a creator learns that another one has taken its place, so that its reader can object.
create function mail_former_address() returns trigger language plpgsql as $$
begin
  -- Bounds what a founder can have mailed to addresses of others.
  if (select count(*) from (select from emails e where e.affiliate_id = new.id and e.kind = 'address_changed'
                               and e.created_at > now() - interval '1 day' limit 5) m) < 5 then
    insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient)
    select id, new.app_id, new.id, 'address_changed', id, old.email from new_email_id() id;
  end if;
  return null;
end $$;
create trigger affiliates_mail_former_address after update of email on affiliates
  for each row when (old.email is not null and new.email is not null and lower(old.email) <> lower(new.email))
  execute function mail_former_address();
