-- Blocks neither reads nor writes.
alter table emails validate constraint emails_kind_check;
alter table emails validate constraint email_to_one_person;
alter table emails validate constraint emails_member_id_fkey;
alter table sign_in_links validate constraint sign_in_link_raises_briefly;
