-- The colour of an app on the pages of its creators. Null: none was chosen.
alter table apps add column brand_color text collate "C" check (brand_color ~ '^#[0-9a-f]{6}$');

drop trigger apps_audit on apps;
create trigger apps_audit after insert or update on apps for each row execute function write_audit_row(
  'app', 'id', 'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes payee_wait_days payout_approval payout_schedule notification_emails! weekly_report brand_color');
