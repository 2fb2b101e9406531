-- without transaction
-- Users whom events of any provider name with a key.
drop index concurrently if exists user_links_by_key;

create index concurrently user_links_by_key on user_links (app_id, user_key);
