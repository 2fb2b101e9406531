-- without transaction
-- The feed of events: in the order in which they were received.
create index concurrently events_by_received on events (app_id, received_at desc, id desc);
