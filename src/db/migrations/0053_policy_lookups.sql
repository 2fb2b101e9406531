-- without transaction
-- What an evaluation by a policy looks up: the components that any event of the payment states, and the users that count
-- with another one.
drop index concurrently if exists events_by_payment_ref;

create index concurrently events_by_payment_ref on events (app_id, payment_ref) where payment_ref is not null;

drop index concurrently if exists bindings_that_count_with;

create index concurrently bindings_that_count_with on bindings (counts_with) where counts_with is not null;
