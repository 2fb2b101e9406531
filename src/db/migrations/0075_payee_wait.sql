-- How many days a new payee of a creator waits until it counts. Null: three.
alter table apps add column payee_wait_days integer check (payee_wait_days between 1 and 30);
drop trigger apps_audit on apps;
create trigger apps_audit after insert or update on apps for each row execute function write_audit_row(
  'app', 'id', 'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes payee_wait_days');
