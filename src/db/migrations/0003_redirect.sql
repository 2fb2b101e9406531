-- The redirect of tracked links, and what a deferred match needs of it. docs/redirect.md says what is kept of a
-- requester's address, and for how long.

-- The random key that addresses are hashed with on one UTC day. When the row is deleted, nothing can make its hashes again.
create table address_keys (
  day_starts_at timestamptz primary key check (date_trunc('day', day_starts_at, 'UTC') = day_starts_at),
  -- AES-256-GCM: nonce, ciphertext and tag together; encryption_key_id names the key that opens it.
  ciphertext    bytea not null,
  encryption_key_id text not null
);

-- Clicks of the redirect that an install without token may still be owed to. A row goes when its click is claimed, or
-- when the longest window has passed; so the hashes stay few, and the rows of clicks are never rewritten for them.
create table deferred_clicks (
  click_id     click_id primary key,
  app_id       app_id not null,
  link_id      link_id not null,
  -- Keyed, and other for each app and day. Never the hash that a caller of POST /clicks sends.
  address_hash bytea not null check (length(address_hash) = 32),
  clicked_at   timestamptz not null,
  foreign key (app_id, click_id) references clicks (app_id, id),
  foreign key (app_id, link_id) references links (app_id, id)
);
-- One step in it gives the next link of an address together with its newest click.
create index deferred_clicks_by_address on deferred_clicks (app_id, address_hash, link_id, clicked_at);
create index deferred_clicks_by_age on deferred_clicks (clicked_at);

-- Whoever claims a click, and by whatever match: it is nobody else's from then on.
create function forget_deferred_click() returns trigger language plpgsql as $$
begin
  delete from deferred_clicks where click_id = new.id;
  return null;
end $$;
create trigger clicks_claimed after update of claimed_by_device on clicks for each row
  when (new.claimed_by_device is not null) execute function forget_deferred_click();
