-- Reprocess runs that are requested over the API: a dry run over a filter, and then a run that applies what it showed.

alter table reprocess_runs
  -- The account key that requested the run. Null for one of the command line.
  add column key_id key_id,
  -- Filters of a run over a time range. Null selects all deliveries.
  add column provider provider,
  add column processing_status text check (processing_status in ('processed', 'duplicate', 'ignored', 'failed')),
  -- The dry run whose plans this run applies. Its own range is empty, so that a worker of the former release applies nothing.
  add column applies_run_id reprocess_run_id,
  -- Of a dry run: what the plans so far would append. Of another run: what it appended, once it has ended.
  add column commission_cents bigint,
  add column revenue_cents bigint,
  add foreign key (app_id, applies_run_id) references reprocess_runs (app_id, id),
  add check (applies_run_id is null or (not dry_run and delivery_id is null and from_at = to_at));

-- Of the runs that are requested over the API, an app has one at a time.
create unique index reprocess_runs_one_requested on reprocess_runs (app_id) where finished_at is null and key_id is not null;
create index reprocess_runs_by_created on reprocess_runs (app_id, created_at desc, id desc);
-- Those of all apps, for the operator.
create index reprocess_runs_latest on reprocess_runs (created_at desc, id desc);
