-- without transaction
-- The valid keys of an account, and those that have expired. One with many revoked keys is read as fast as one with few.
drop index concurrently if exists account_keys_not_revoked;
create index concurrently account_keys_not_revoked on account_keys (account_id, created_at, id)
  where revoked_at is null and not is_member;
