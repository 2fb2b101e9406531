-- without transaction
-- For the relay of mails: what is open of each app, so that no account takes the place of the others. Urgent ones are those whose reader waits.
drop index concurrently if exists emails_open_of_app;
create index concurrently emails_open_of_app
  on emails (app_id, (coalesce(expires_at - created_at <= interval '1 hour', false)), relay_at) where ended_at is null;
drop index concurrently if exists emails_urgent_to_relay;
-- For the limit of invitations that an account sends.
drop index concurrently if exists emails_invitations;
create index concurrently emails_invitations on emails (app_id, created_at desc) where kind = 'invitation';
drop index concurrently if exists emails_open_of_members;
create index concurrently emails_open_of_members
  on emails ((coalesce(expires_at - created_at <= interval '1 hour', false)), relay_at) where ended_at is null and member_id is not null;
