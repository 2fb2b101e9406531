-- without transaction
-- Those that a member has added within an hour, revoked ones too: each is a mail.
drop index concurrently if exists passkeys_added;
create index concurrently passkeys_added on passkeys (member_id, created_at);
