-- without transaction
-- When a purchase last came with a code, without those of self-tests, and the latest codes of a namespace that work.
drop index concurrently if exists payment_codes_arrived;
create index concurrently payment_codes_arrived on payment_codes (app_id, created_at desc)
  where not starts_with(payment_ref, 'tributary_self_test_');

drop index concurrently if exists payment_codes_arrived_by_value;
create index concurrently payment_codes_arrived_by_value on payment_codes (app_id, namespace, (lower(value) collate "C"), created_at desc)
  where not starts_with(payment_ref, 'tributary_self_test_');

drop index concurrently if exists codes_that_work;
create index concurrently codes_that_work on codes (app_id, namespace, created_at desc, id desc) where deactivated_at is null;

drop index concurrently if exists payment_codes_by_created;
