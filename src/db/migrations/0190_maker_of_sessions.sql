-- The key of the member who copied the link that began the session.
alter table sessions add column link_made_by text collate "C";
