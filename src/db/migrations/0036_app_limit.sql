-- An account has at most `app_limit` apps. An app costs a place in files, look-ups and queues that all accounts share. An account
-- that has more keeps them.
alter table accounts add column app_limit integer not null default 200 check (app_limit between 1 and 100000);

-- The lock of the account makes inserts of the same account wait for each other, so that the count sees all of them. An app whose
-- id exists is not a new one: the statement that is sent again stays safe.
create function refuse_app_beyond_limit() returns trigger language plpgsql as $$
declare
  most integer;
begin
  select app_limit into most from accounts where id = new.account_id for no key update;
  if (select count(*) from apps where account_id = new.account_id and id <> new.id) >= most then
    raise exception 'the account has % apps', most using errcode = 'check_violation', constraint = 'apps_of_account';
  end if;
  return new;
end $$;
create trigger apps_limit before insert on apps for each row execute function refuse_app_beyond_limit();

-- The apps with mobile apps of each account, the first of which a shared host names.
create index apps_with_mobile_apps_of_account on apps (account_id, created_at, id)
  where cardinality(ios_app_ids) > 0 or android_apps <> '[]';
drop index apps_with_mobile_apps;

-- A change of the limit is in the audit log, too.
drop trigger accounts_audit on accounts;
create trigger accounts_audit after insert or update on accounts
  for each row execute function write_audit_row('account', 'id', 'name app_limit');
