-- What an event states about the parts of its payment that do not reach the app: an amount in minor units of the payment's currency, or
-- an estimated share in parts per million. Null is unknown. Reprocessing fills what earlier versions did not read.
alter table events
  add column tax_minor bigint,
  add column tax_ppm integer,
  add column store_fee_minor bigint,
  add column store_fee_ppm integer,
  add constraint components_are_parts_of_the_payment check
    (num_nonnulls(tax_minor, tax_ppm) <= 1 and num_nonnulls(store_fee_minor, store_fee_ppm) <= 1
     and (num_nonnulls(tax_minor, tax_ppm, store_fee_minor, store_fee_ppm) = 0 or num_nulls(payment_ref, amount_minor) = 0)
     and tax_minor between 0 and amount_minor and store_fee_minor between 0 and amount_minor
     and tax_ppm between 0 and 1000000 and store_fee_ppm between 0 and 1000000) not valid;
