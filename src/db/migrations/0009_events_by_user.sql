-- without transaction
-- The feed of one user's events.
create index concurrently events_by_user on events (app_id, customer_user_id, received_at desc, id desc)
  where customer_user_id is not null;
