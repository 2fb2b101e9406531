-- Blocks neither reads nor writes.
alter table affiliates validate constraint affiliates_note_check;
alter table affiliates validate constraint affiliates_tags_check;
