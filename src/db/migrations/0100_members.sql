-- Members of an account: persons with an address and a role. Each holds a key of the account that nobody has as text, so sessions, audit
-- and permissions are those of keys.
create domain member_id as text collate "C" check (value ~ '^mem_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- The key of a member. Only the member's sessions use it; its end is that of the member. It expired in 1970, which counts for no member: a
-- process of an older version, which knows nothing of roles and apps, so takes no session of one.
alter table account_keys add column is_member boolean not null default false;
drop trigger account_keys_audit on account_keys;
-- What happens to the key of a member is in the audit rows of the member.
create trigger account_keys_audit after insert or update of label, permissions, expires_at, revoked_at on account_keys
  for each row when (not new.is_member) execute function write_audit_row('account_key', 'id', 'label permissions expires_at revoked_at');

create function permissions_of_role(role text) returns text[] language sql immutable as $$
  select case role when 'owner' then array['read', 'write', 'setup', 'payout'] when 'admin' then array['read', 'write', 'setup']
                   when 'finance' then array['read', 'payout'] when 'analyst' then array['read'] end
$$;

create table members (
  id         member_id primary key,
  account_id account_id not null references accounts (id),
  key_id     key_id not null unique,
  -- Erased when the member is removed.
  email      text check (length(email) between 3 and 320),
  -- The label of the key, too.
  name       text not null check (length(name) between 1 and 200),
  role       text collate "C" not null check (role in ('owner', 'admin', 'finance', 'analyst')),
  -- The apps that the member sees. Null: all of the account, also later ones.
  app_ids    text[] check (cardinality(app_ids) between 1 and 200),
  created_at timestamptz not null,
  removed_at timestamptz,
  foreign key (account_id, key_id) references account_keys (account_id, id),
  constraint member_owner_of_all_apps check (role <> 'owner' or app_ids is null),
  constraint member_removed_without_address check ((email is null) = (removed_at is not null))
);
create unique index members_one_address on members (account_id, lower(email)) where removed_at is null;
create index members_by_address on members (lower(email)) where removed_at is null;
create index members_by_account on members (account_id, created_at, id) where removed_at is null;
create index members_owners on members (account_id) where role = 'owner' and removed_at is null;

create function guard_member() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'member % is removed, never deleted', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if tg_op = 'UPDATE' and (old.removed_at is not null
     or (old.id, old.account_id, old.key_id, old.created_at) is distinct from (new.id, new.account_id, new.key_id, new.created_at)
     -- Another address would be another person, with the sessions of this one.
     or new.email is distinct from old.email and new.removed_at is null) then
    raise exception 'member % does not change this way', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if tg_op = 'INSERT' and not exists (select from account_keys k where k.id = new.key_id and k.is_member and k.expires_at = 'epoch'
                                         and k.permissions = permissions_of_role(new.role)) then
    raise exception 'the key of member % is not that of a member with this role', new.id using errcode = 'integrity_constraint_violation';
  end if;
  if exists (select from unnest(new.app_ids) app where not exists (select from apps a where a.id = app and a.account_id = new.account_id)) then
    raise exception 'member % is given an app that the account does not have', new.id
      using errcode = 'integrity_constraint_violation', constraint = 'member_apps_of_account';
  end if;
  return new;
end $$;
-- After the statement for a new row: the key is added by the same statement.
create trigger members_guard before update or delete on members for each row execute function guard_member();
create constraint trigger members_guard_new after insert on members for each row execute function guard_member();

-- An account that has an owner keeps one. The lock of the account makes two owners who remove each other wait for each other.
create function keep_an_owner() returns trigger language plpgsql as $$
begin
  perform from accounts where id = old.account_id for no key update;
  if not exists (select from members m where m.account_id = old.account_id and m.role = 'owner' and m.removed_at is null and m.id <> old.id) then
    raise exception 'member % is the last owner', old.id using errcode = 'integrity_constraint_violation', constraint = 'members_last_owner';
  end if;
  return new;
end $$;
create trigger members_owner before update of role, removed_at on members for each row
  when (old.role = 'owner' and old.removed_at is null and (new.role <> 'owner' or new.removed_at is not null))
  execute function keep_an_owner();

-- The key follows every change of the member: with the key end its sessions and links.
create function change_key_of_member() returns trigger language plpgsql as $$
begin
  update account_keys
     set label = new.name, permissions = permissions_of_role(new.role),
         revoked_at = case when new.removed_at is null then revoked_at else coalesce(revoked_at, now()) end
   where account_id = new.account_id and id = new.key_id;
  return null;
end $$;
create trigger members_key after update on members for each row execute function change_key_of_member();

create trigger members_audit after insert or update on members
  for each row execute function write_audit_row('member', 'id', 'email! name role app_ids removed_at');
