-- Mails to creators. A row is written with the fact that it tells, and a workflow sends it. The address is read when it is sent.
create domain email_id as text collate "C" check (value ~ '^eml_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table emails (
  id                email_id primary key,
  app_id            app_id not null,
  -- Who gets it. The address is not stored here.
  affiliate_id      affiliate_id not null,
  kind              text collate "C" not null check (kind in ('invitation', 'payee_code', 'payee_changed', 'payout_sent')),
  -- The fact that it tells: there is one mail of a kind for it.
  subject_id        text collate "C" not null check (length(subject_id) between 1 and 100),
  -- The token or the code that only the mail has, until it has ended. Only the service can decrypt it.
  ciphertext        bytea,
  encryption_key_id text collate "C",
  status            text collate "C" not null default 'queued' check (status in ('queued', 'sent', 'failed', 'skipped')),
  -- Those that were begun.
  attempts          integer not null default 0 check (attempts between 0 and 10),
  last_problem      text check (length(last_problem) between 1 and 300),
  created_at        timestamptz not null default now(),
  -- When sending it becomes useless: what it contains is not valid any more. Null: never.
  expires_at        timestamptz,
  next_attempt_at   timestamptz default now(),
  relay_at          timestamptz default now(),
  ended_at          timestamptz,
  unique (app_id, kind, subject_id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  constraint email_secret_has_its_key check ((ciphertext is null) = (encryption_key_id is null)),
  constraint email_end check ((status = 'queued') = (ended_at is null) and (ended_at is null) = (next_attempt_at is not null)
                              and (ended_at is null) = (relay_at is not null)),
  constraint email_ends_without_secret check (ended_at is null or ciphertext is null),
  constraint email_sent_by_an_attempt check (status <> 'sent' or attempts >= 1)
);
create index emails_by_created on emails (app_id, created_at desc, id desc);
create index emails_of_creator on emails (affiliate_id, kind, created_at desc);
create index emails_to_relay on emails (relay_at) where ended_at is null;
create index emails_due on emails (next_attempt_at) where ended_at is null;

-- What was sent is never sent again, by no process: a mail that has ended does not change, and an attempt is counted before it is made.
create function guard_email() returns trigger language plpgsql as $$
begin
  if old.ended_at is not null
     or (old.id, old.app_id, old.affiliate_id, old.kind, old.subject_id, old.created_at, old.expires_at)
          is distinct from (new.id, new.app_id, new.affiliate_id, new.kind, new.subject_id, new.created_at, new.expires_at)
     or new.attempts not in (old.attempts, old.attempts + 1)
     or new.ciphertext is not null and new.ciphertext is distinct from old.ciphertext then
    raise exception 'mail % is %, and does not change this way', old.id, old.status using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger emails_guard before update on emails for each row execute function guard_email();

create function new_email_id() returns email_id language sql volatile as $$
  select 'eml_' || substr(new_audit_id(), 5)
$$;
