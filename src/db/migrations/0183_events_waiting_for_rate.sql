-- without transaction
-- Refunds, disputes and other money that came back and that wait for a rate, by currency: each event but those of payments. What an
-- invoice was paid outside Stripe is an event of the kind `other`, and an event may have been stored before a version could read its
-- money. The import of rates and the operator's page search them.
drop index concurrently if exists events_without_rate;
create index concurrently events_without_rate on events (currency, id)
  where likely_cause = 'missing_exchange_rate'
    and kind not in ('purchase', 'renewal', 'trial_converted', 'product_change');
drop index concurrently if exists events_waiting_for_rate;
