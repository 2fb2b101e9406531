-- When the database stored a delivery, by its own clock. `received_at` is of the process that verified the signature, and its
-- clock may be wrong: the age of open work and its turn follow the clock of the database.
alter table deliveries add column accepted_at timestamptz not null default now();

drop trigger deliveries_announce_stuck on deliveries;
create trigger deliveries_announce_stuck after update of last_error on deliveries
  for each row when (new.last_error is not null and new.completed_at is null and not new.is_self_test
                     and new.accepted_at < now() - interval '30 seconds')
  execute function announce_stuck_delivery();
