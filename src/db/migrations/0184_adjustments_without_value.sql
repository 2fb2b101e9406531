-- without transaction
-- The refunds and disputes that have no value in dollars, by the event that states them: an import of rates looks for those that wait.
drop index concurrently if exists adjustments_without_value;
create index concurrently adjustments_without_value on adjustments (event_id) where usd_cents is null and state = 'applied';
