-- Blocks neither reads nor writes.
alter table payout_requests validate constraint payout_requests_status_check;
