-- without transaction
drop index concurrently if exists emails_of_member;
create index concurrently emails_of_member on emails (member_id, kind, created_at desc) where member_id is not null;

-- Open links that were mailed to a member: their number is limited.
drop index concurrently if exists sign_in_links_raising;
create index concurrently sign_in_links_raising on sign_in_links (key_id, expires_at) where raises and session_id is null;
-- For the list of the keys of an account, which has none of its members.
drop index concurrently if exists account_keys_listed;
create index concurrently account_keys_listed on account_keys (account_id, created_at, id) where not is_member;
