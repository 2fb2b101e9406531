-- without transaction
-- Refunds, disputes and other money that came back and that wait for a rate, by currency. What an invoice was paid outside Stripe is
-- an event of the kind `other`. The import of rates and the operator's page search them.
drop index concurrently if exists events_without_rate;
create index concurrently events_without_rate on events (currency, id)
  where likely_cause = 'missing_exchange_rate'
    and kind in ('refund', 'refund_reversed', 'chargeback', 'chargeback_reversed', 'other');
drop index concurrently if exists events_waiting_for_rate;
