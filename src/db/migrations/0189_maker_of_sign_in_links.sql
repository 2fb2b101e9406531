-- The key of the member who copied a link for another member. Null for a link that was mailed, and for one of the operator.
alter table sign_in_links add column made_by text collate "C";
