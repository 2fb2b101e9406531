-- without transaction
drop index concurrently if exists events_with_components;
drop index concurrently if exists bindings_counted_with;
drop index concurrently if exists affiliates_with_own_rate;

create index concurrently events_with_components on events (app_id, payment_ref)
  where num_nonnulls(tax_minor, tax_ppm, store_fee_minor, store_fee_ppm) > 0;

create index concurrently bindings_counted_with on bindings (counts_with) where counts_with is not null;

create index concurrently affiliates_with_own_rate on affiliates (app_id, id) where default_commission_rate_bps is not null;
