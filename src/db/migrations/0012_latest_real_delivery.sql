-- without transaction
-- The latest delivery that a provider has sent, below any number of deliveries that were fed back from an export. The index
-- deliveries_latest_accepted serves the former release only: the next one drops it. It has another order of nulls, so no plan
-- can use it instead.
drop index concurrently if exists deliveries_latest_real;

create index concurrently deliveries_latest_real on deliveries (app_id, provider, received_at desc nulls last)
  where signature_valid and not is_self_test and proof->>'kind' is distinct from 'reconciliation';
