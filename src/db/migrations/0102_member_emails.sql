-- Mails to members of an account, beside those to creators of an app.
alter table emails
  alter column app_id drop not null,
  alter column affiliate_id drop not null,
  -- A domain with a check would have the table rewritten.
  add column account_id text collate "C",
  add column member_id text collate "C";
alter table emails drop constraint emails_kind_check;
alter table emails
  add constraint emails_kind_check check (kind in ('invitation', 'payee_code', 'payee_changed', 'payout_sent', 'member_invitation', 'member_sign_in')) not valid,
  add constraint email_to_one_person check (
    (app_id is null) = (affiliate_id is null) and (account_id is null) = (member_id is null) and (affiliate_id is null) <> (member_id is null)
    and (member_id is not null) = (kind in ('member_invitation', 'member_sign_in'))) not valid,
  add constraint emails_member_id_fkey foreign key (member_id) references members (id) not valid;

create or replace function guard_email() returns trigger language plpgsql as $$
begin
  if old.ended_at is not null
     or (old.id, old.app_id, old.affiliate_id, old.account_id, old.member_id, old.kind, old.subject_id, old.created_at, old.expires_at)
          is distinct from (new.id, new.app_id, new.affiliate_id, new.account_id, new.member_id, new.kind, new.subject_id, new.created_at, new.expires_at)
     or new.attempts not in (old.attempts, old.attempts + 1)
     or new.ciphertext is not null and new.ciphertext is distinct from old.ciphertext then
    raise exception 'mail % is %, and does not change this way', old.id, old.status using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
