-- without transaction
-- Refunds and disputes that wait for a rate. The operator's page lists their currencies.
drop index concurrently if exists events_waiting_for_rate;
create index concurrently events_waiting_for_rate on events (currency, id)
  where likely_cause = 'missing_exchange_rate' and kind in ('refund', 'refund_reversed', 'chargeback', 'chargeback_reversed');
