-- Blocks neither reads nor writes.
alter table events validate constraint components_are_parts_of_the_payment;
