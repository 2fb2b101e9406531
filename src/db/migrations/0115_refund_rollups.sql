-- What was refunded on each day (UTC) of an app: a refund appends, a fold adds up, a read adds what is not folded (docs/rollups.md). They
-- are apart from the other sums because an earlier version folds those, and does not know this column.
create table refund_deltas (
  payment_id   payment_id not null,
  position     integer not null,
  app_id       app_id not null,
  day          date not null,
  amount_cents cents not null,
  created_at   timestamptz not null default now(),
  primary key (payment_id, position)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index refund_deltas_by_app on refund_deltas (app_id);
create index refund_deltas_by_created on refund_deltas (created_at, payment_id, position);

create table refund_days (
  app_id         app_id not null,
  day            date not null,
  refunded_cents bigint not null,
  primary key (app_id, day)
);

create function roll_up_refund() returns trigger language plpgsql as $$
begin
  insert into refund_deltas (payment_id, position, app_id, day, amount_cents)
  values (new.payment_id, new.position, new.app_id, (new.occurred_at at time zone 'UTC')::date, -new.amount_cents)
  on conflict do nothing;
  return null;
end $$;
create trigger revenue_entries_roll_up_refund after insert on revenue_entries
  for each row when (new.adjustment_id is not null) execute function roll_up_refund();

-- What a check of the ledger found in an app when it last ran: only the rules that rows break.
create table ledger_findings (
  app_id     app_id not null references apps (id),
  check_name text collate "C" not null check (length(check_name) between 1 and 100),
  violations integer not null check (violations > 0),
  found_at   timestamptz not null default now(),
  primary key (app_id, check_name)
);

alter table alerts drop constraint alerts_rule_check;
alter table alerts
  add constraint alerts_rule_check check
    (rule in ('provider_silent', 'deliveries_failing', 'webhooks_refused', 'draft_waiting', 'run_stalled', 'endpoint_failing', 'many_refunds',
              'ledger_violated')) not valid;
