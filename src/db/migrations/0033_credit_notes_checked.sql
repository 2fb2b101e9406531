-- Blocks neither reads nor writes.
alter table adjustments validate constraint adjustments_kind_check;
