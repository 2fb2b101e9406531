-- without transaction
-- Each build begins anew: one that was interrupted leaves an index behind that nothing uses and whose name is taken.

-- The unattributed payments of a cause, and their number and money in a range.
drop index concurrently if exists events_by_cause;
create index concurrently events_by_cause on events (app_id, likely_cause, occurred_at desc, id desc)
  include (amount_cents) where likely_cause is not null;

-- The feed of events: in the order in which they were received.
drop index concurrently if exists events_by_received;
create index concurrently events_by_received on events (app_id, received_at desc, id desc);

-- The feed of one user's events.
drop index concurrently if exists events_by_user;
create index concurrently events_by_user on events (app_id, customer_user_id, received_at desc, id desc)
  where customer_user_id is not null;
