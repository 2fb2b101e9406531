-- Who gave purchases to whom, as facts: a transfer may be told before its giver is known, and counts when he is.
create table user_transfers (
  app_id           app_id not null,
  event_id         event_id not null,
  role             text collate "C" not null check (role in ('giver', 'receiver')),
  customer_user_id text not null check (length(customer_user_id) between 1 and 512),
  primary key (app_id, customer_user_id, role, event_id),
  foreign key (app_id, event_id) references events (app_id, id)
);
create index user_transfers_by_event on user_transfers (event_id, role);
