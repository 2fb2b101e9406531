-- Where the money of a creator goes, as versions with their author. A version is appended and never changed, except that its recipient is
-- encrypted with another key, or erased. Only the service can decrypt a recipient.
create domain payee_id as text collate "C" check (value ~ '^pye_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payees (
  id                payee_id not null unique,
  app_id            app_id not null,
  affiliate_id      affiliate_id not null,
  version           integer not null check (version >= 1),
  previous_version  integer generated always as (nullif(version - 1, 0)) stored,
  -- None: the creator has no payee any more.
  method            text collate "C" not null check (method in ('paypal', 'wise', 'other', 'none')),
  ciphertext        bytea,
  encryption_key_id text collate "C",
  account_id        account_id not null,
  set_by            key_id not null,
  set_at            timestamptz not null,
  counts_from       timestamptz not null,
  erased_at         timestamptz,
  primary key (app_id, affiliate_id, version),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  -- At the end of the transaction: an archive is read in any order.
  foreign key (app_id, affiliate_id, previous_version) references payees (app_id, affiliate_id, version) deferrable initially deferred,
  foreign key (account_id, set_by) references account_keys (account_id, id),
  constraint payee_has_its_recipient check ((ciphertext is null) = (method = 'none' or erased_at is not null)),
  constraint recipient_has_its_key check ((ciphertext is null) = (encryption_key_id is null)),
  constraint payee_waits check (counts_from - set_at between interval '24 hours' and interval '720 hours')
);
create index payees_by_key on payees (encryption_key_id, app_id, affiliate_id, version) where encryption_key_id is not null;

-- Holds for every process: versions of a creator are appended one at a time, none while a payout is settled, and each waits as long as the
-- app says at that moment. In milliseconds, so that the service and the database agree at which one a version counts.
create trigger payees_lock before insert on payees for each row execute function lock_payouts_of_creator();

create function begin_payee_wait() returns trigger language plpgsql as $$
declare
  days integer := (select coalesce(payee_wait_days, 3) from apps where id = new.app_id);
begin
  new.set_at := greatest(date_trunc('milliseconds', clock_timestamp()),
    (select set_at from payees where app_id = new.app_id and affiliate_id = new.affiliate_id order by version desc limit 1));
  new.counts_from := new.set_at + days * interval '24 hours';
  return new;
end $$;
create trigger payees_wait before insert on payees for each row execute function begin_payee_wait();

create function guard_payee() returns trigger language plpgsql as $$
declare
  -- The generated column is computed after this trigger.
  changeable constant text[] := '{ciphertext,encryption_key_id,erased_at,previous_version}';
begin
  if to_jsonb(new) - changeable <> to_jsonb(old) - changeable or old.ciphertext is null then
    raise exception 'version % of the payee of % cannot be changed', old.version, old.affiliate_id
      using errcode = 'integrity_constraint_violation', hint = 'append the next version';
  end if;
  return new;
end $$;
create trigger payees_guard before update on payees for each row execute function guard_payee();
create trigger payees_no_delete before delete or truncate on payees for each statement execute function forbid_change();
create trigger payees_audit after insert or update of erased_at on payees for each row execute function
  write_audit_row('payee', 'id', 'affiliate_id version method counts_from erased_at');
