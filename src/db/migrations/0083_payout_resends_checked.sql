-- Blocks neither reads nor writes.
alter table payout_runs validate constraint payout_runs_kind_check;
alter table payout_run_items validate constraint payout_run_items_resend_result_check;
alter table payout_run_items validate constraint resent_item_names_its_return;
alter table payout_run_items validate constraint item_pays_or_resends;
alter table payout_run_items validate constraint payout_run_items_payout_fkey;
alter table payout_run_items validate constraint payout_run_items_return_fkey;
