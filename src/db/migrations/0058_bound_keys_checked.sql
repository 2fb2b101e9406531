-- Blocks neither reads nor writes.
alter table bindings validate constraint key_is_of_a_provider;
