-- without transaction
drop index concurrently if exists sign_in_links_made_by;
create index concurrently sign_in_links_made_by on sign_in_links (made_by) where made_by is not null;
drop index concurrently if exists sessions_by_link_maker;
create index concurrently sessions_by_link_maker on sessions (link_made_by) where link_made_by is not null and ended_at is null;
