-- Whether a payout run needs the approval of another key than the one that drafted it or set a payee in it. Null: any key that may pay.
alter table apps add column payout_approval text collate "C" check (payout_approval = 'another_key');
drop trigger apps_audit on apps;
create trigger apps_audit after insert or update on apps for each row execute function write_audit_row(
  'app', 'id', 'name commission_rate_bps attribution_window_days hold_period_days deferred_window_minutes link_subdomain identity_verification destination_schemes stripe_accounts ios_app_ids android_apps purchase_codes payee_wait_days payout_approval');

-- Whether a key has drafted a run, or has set a payee to whom it pays.
create function has_part_in_run(run payout_runs, key text) returns boolean language sql stable as $$
  select run.key_id = key or exists (
    select from payout_run_items i
      join payees y on y.app_id = i.app_id and y.affiliate_id = i.affiliate_id and y.version = i.payee_version
     where i.run_id = run.id and y.set_by = key)
$$;

create function require_another_approver() returns trigger language plpgsql as $$
begin
  if (select a.payout_approval from apps a where a.id = new.app_id) = 'another_key' and has_part_in_run(new, new.approved_by) then
    raise exception 'payout run % needs the approval of another key', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_runs_approver before update on payout_runs
  for each row when (old.status = 'draft' and new.status = 'approved') execute function require_another_approver();
