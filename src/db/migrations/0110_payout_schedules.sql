-- A payout run that is drafted each month by itself, and mails to the people who run an app. A draft pays nothing until somebody approves it.
alter table apps
  -- {day, timezone, minimumCents, withoutPayee}. Null: none.
  add column payout_schedule jsonb check (jsonb_typeof(payout_schedule) = 'object'),
  -- The key that has set it, and since when its day and its time zone count.
  add column payout_schedule_key key_id,
  add column payout_schedule_since timestamptz,
  -- Who runs the app: they get mails about it.
  add column notification_emails text[] check (cardinality(notification_emails) between 1 and 10 and array_position(notification_emails, null) is null),
  -- Null: they get a report each week.
  add column weekly_report boolean check (not weekly_report),
  -- Since when they get reports.
  add column notifications_since timestamptz,
  add constraint payout_schedule_is_set check ((payout_schedule is null) = (payout_schedule_key is null)
                                               and (payout_schedule is null) = (payout_schedule_since is null));
create index apps_with_payout_schedule on apps (id) where payout_schedule is not null;
create index apps_with_notifications on apps (id) where notification_emails is not null;

drop trigger apps_audit on apps;
create trigger apps_audit after insert or update on apps for each row execute function write_audit_row(
  'app', 'id', 'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes payee_wait_days payout_approval payout_schedule notification_emails! weekly_report');

-- The month for which the schedule has drafted a run. Null: a person has drafted it.
alter table payout_runs add column scheduled_month text collate "C" check (scheduled_month ~ '^\d{4}-(0[1-9]|1[0-2])$');

drop trigger payout_runs_audit on payout_runs;
create trigger payout_runs_audit after insert or update of status, stopped_at on payout_runs for each row
  when (new.status <> 'settled') execute function
  write_audit_row('payout_run', 'id', 'kind status minimum_cents item_count total_cents scheduled_month approved_by stopped_at');

-- The months that the schedule of an app is done with, each once, whatever drafts at the same time.
create table payout_schedule_months (
  app_id  app_id not null references apps (id),
  month   text collate "C" not null check (month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
  -- The draft. Null: nobody was due anything.
  run_id  payout_run_id unique,
  done_at timestamptz not null default now(),
  primary key (app_id, month),
  foreign key (app_id, run_id) references payout_runs (app_id, id)
);
create trigger payout_schedule_months_append_only before update or delete or truncate on payout_schedule_months
  for each statement execute function forbid_change();
