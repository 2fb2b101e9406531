-- Every payment from before has none.
alter table payments validate constraint payment_was_decided_for_a_binding;
