-- without transaction
-- For the relay of mails: what is open of the members of each account, so that no account takes the place of the others. Urgent are those whose
-- reader waits, and notices of a new passkey.
drop index concurrently if exists emails_open_of_account;
create index concurrently emails_open_of_account
  on emails (account_id, (coalesce(expires_at - created_at <= interval '1 hour', kind = 'passkey_added')), relay_at)
  where ended_at is null and member_id is not null;
drop index concurrently if exists emails_open_of_members;
-- For the limit of invitations of members that an account sends.
drop index concurrently if exists emails_member_invitations;
create index concurrently emails_member_invitations on emails (account_id, created_at desc) where kind = 'member_invitation';
-- For the limit of mails with a link to one address: its keyed hash follows the slash in the subject.
drop index concurrently if exists emails_to_member_address;
create index concurrently emails_to_member_address
  on emails (account_id, (split_part(subject_id, '/', 2)), kind, created_at desc) where member_id is not null;
