-- Through whom a payment earns as soon as its amount in dollars is known: who owned it when it was evaluated without a rate. Later
-- bindings change nothing for it, as for a payment that earned at once.
alter table payments
  add column decided_binding_id text collate "C",
  add constraint payment_was_decided_for_a_binding foreign key (app_id, decided_binding_id) references bindings (app_id, id) not valid;
