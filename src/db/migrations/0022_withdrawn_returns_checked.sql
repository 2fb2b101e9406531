-- Blocks neither reads nor writes.
alter table payout_transfers validate constraint payout_transfers_state_check;
alter table payout_transfers validate constraint transfer_state_is_possible;
