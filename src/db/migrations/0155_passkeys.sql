-- Passkeys of members: a browser or a device signs a challenge with a key that never leaves it.
create domain passkey_id as text collate "C" check (value ~ '^psk_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table passkeys (
  id            passkey_id primary key,
  account_id    account_id not null,
  member_id     member_id not null references members (id),
  name          text not null check (length(name) between 1 and 200),
  -- Erased when the passkey is revoked.
  credential_id bytea check (length(credential_id) between 16 and 1023),
  -- In the format of COSE.
  public_key    bytea check (length(public_key) between 1 and 2048),
  -- How often the authenticator has signed, as it says itself. 0 if it does not count.
  sign_count    bigint not null check (sign_count between 0 and 4294967295),
  -- Whether it lets a session pay: only if the member had shown that already when it was added.
  raises        boolean not null,
  created_at    timestamptz not null,
  last_used_at  timestamptz,
  revoked_at    timestamptz,
  constraint passkey_revoked_without_key check ((credential_id is null) = (revoked_at is not null) and (public_key is null) = (revoked_at is not null))
);
-- A credential belongs to one member.
create unique index passkeys_one_credential on passkeys (credential_id);
create index passkeys_by_member on passkeys (member_id, created_at, id) where revoked_at is null;

create function guard_passkey() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'passkey % is revoked, never deleted', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if tg_op = 'UPDATE' then
    if old.revoked_at is not null
       or (old.id, old.account_id, old.member_id, old.name, old.raises, old.created_at)
            is distinct from (new.id, new.account_id, new.member_id, new.name, new.raises, new.created_at)
       or new.sign_count < old.sign_count
       or new.revoked_at is null and (old.credential_id, old.public_key) is distinct from (new.credential_id, new.public_key) then
      raise exception 'passkey % does not change this way', old.id using errcode = 'integrity_constraint_violation';
    end if;
    return new;
  end if;
  -- Waits for a statement that removes the member, which revokes the passkeys that it finds.
  perform from members m where m.id = new.member_id and m.account_id = new.account_id and m.removed_at is null for share;
  if not found then
    raise exception 'passkey % is given to nobody who is a member of the account', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger passkeys_guard before insert or update or delete on passkeys for each row execute function guard_passkey();

create function revoke_passkeys_of_member() returns trigger language plpgsql as $$
begin
  update passkeys set revoked_at = new.removed_at, credential_id = null, public_key = null
   where member_id = new.id and revoked_at is null;
  return null;
end $$;
create trigger members_passkeys after update of removed_at on members for each row
  when (old.removed_at is null and new.removed_at is not null) execute function revoke_passkeys_of_member();

create trigger passkeys_audit after insert or update of revoked_at on passkeys
  for each row execute function write_audit_row('passkey', 'id', 'member_id name raises revoked_at');

-- Challenges that were answered, so that none is answered twice. Only an answer with a right signature is stored.
create table used_passkey_challenges (
  challenge_sha256 bytea primary key check (length(challenge_sha256) = 32),
  -- When the row can be deleted: later than the end of the challenge.
  expires_at       timestamptz not null
);
create index used_passkey_challenges_by_expiry on used_passkey_challenges (expires_at);
