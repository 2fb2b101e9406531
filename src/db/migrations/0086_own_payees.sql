-- A creator sets the own payee with a code that is mailed to the creator's address. Who may only write could otherwise change the address, and
-- with it where the money goes: so an address counts for codes seven days after it was set, and a changed one only if it was changed, or
-- confirmed, by a caller who may pay.
alter table affiliates
  add column email_set_at timestamptz not null default now(),
  -- Null: it is the address with which the creator was added. False: it was changed by a caller who may not pay.
  add column email_confirmed boolean;

-- Says whether the caller of the statement may pay, as a condition that is always true. An older process does not say it.
create function confirms_email(may_pay boolean) returns boolean language sql volatile as $$
  select set_config('tributary.confirms_email', case when may_pay then 'on' else '' end, true) is not null
$$;

create function note_email_change() returns trigger language plpgsql as $$
declare
  may_pay boolean := coalesce(current_setting('tributary.confirms_email', true), '') = 'on';
begin
  if tg_op = 'INSERT' then
    new.email_set_at := now();
    new.email_confirmed := null;
  elsif new.email is distinct from old.email then
    new.email_set_at := now();
    new.email_confirmed := may_pay;
  elsif may_pay and old.email_confirmed is false then
    new.email_confirmed := true;
  end if;
  return new;
end $$;
create trigger affiliates_email before insert or update of email on affiliates for each row execute function note_email_change();

drop trigger affiliates_audit on affiliates;
create trigger affiliates_audit after insert or update on affiliates for each row execute function
  write_audit_row('affiliate', 'id', 'name email! status default_commission_rate_bps external_id email_confirmed');

-- A payee that a creator wants, until the code is entered. The code itself is in the mail only.
create domain payee_change_id as text collate "C" check (value ~ '^pch_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payee_changes (
  id                payee_change_id primary key,
  app_id            app_id not null,
  affiliate_id      affiliate_id not null,
  method            text collate "C" not null check (method in ('paypal', 'wise', 'other')),
  -- The recipient. Only the service can decrypt it. Removed at the end.
  ciphertext        bytea,
  encryption_key_id text collate "C",
  -- A keyed hash of the code and of what it approves.
  code_hash         text collate "C" not null,
  -- Those that were begun.
  attempts          integer not null default 0 check (attempts between 0 and 5),
  created_at        timestamptz not null default now(),
  expires_at        timestamptz not null check (expires_at > created_at),
  -- When it was confirmed, or another one replaced it.
  ended_at          timestamptz,
  -- The version that it has become.
  payee_id          payee_id,
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  constraint payee_change_ends_without_recipient check ((ended_at is null) = (ciphertext is not null) and (ciphertext is null) = (encryption_key_id is null)),
  constraint payee_change_confirmed check (payee_id is null or ended_at is not null)
);
create unique index payee_changes_one_open on payee_changes (affiliate_id) where ended_at is null;
create index payee_changes_by_expiry on payee_changes (expires_at);

-- A version has the key that set it, or the creator has confirmed it with a code in this transaction.
alter table payees alter column account_id drop not null, alter column set_by drop not null;
alter table payees add constraint payee_set_by_one check ((account_id is null) = (set_by is null)) not valid;
alter table payees validate constraint payee_set_by_one;

create function require_confirmed_payee() returns trigger language plpgsql as $$
begin
  if not exists (select from payee_changes c
                  where c.payee_id = new.id and c.affiliate_id = new.affiliate_id and c.app_id = new.app_id and c.method = new.method
                    and c.ended_at = now()) then
    raise exception 'the creator % has not confirmed the payee %', new.affiliate_id, new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payees_confirmed before insert on payees for each row when (new.set_by is null) execute function require_confirmed_payee();
