-- Blocks neither reads nor writes.
alter table events validate constraint events_kind_check;
alter table events validate constraint events_likely_cause_check;
alter table events validate constraint components_are_parts_of_the_payment;
alter table commissions validate constraint only_entry_has_no_payment;
