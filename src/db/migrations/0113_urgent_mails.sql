-- without transaction
-- Mails whose reader waits for them, such as a code: what they contain is valid for an hour or less. They go before all others.
drop index concurrently if exists emails_urgent_to_relay;
create index concurrently emails_urgent_to_relay on emails (relay_at) where ended_at is null and expires_at - created_at <= interval '1 hour';
