-- without transaction
-- The unattributed payments of a cause, and their number and money in a range.
create index concurrently events_by_cause on events (app_id, likely_cause, occurred_at desc, id desc)
  include (amount_cents) where likely_cause is not null;
