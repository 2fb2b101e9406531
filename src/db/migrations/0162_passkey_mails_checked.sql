-- Blocks neither reads nor writes.
alter table emails validate constraint emails_kind_check;
alter table emails validate constraint email_of_app_or_member;
alter table emails validate constraint email_has_reader;
