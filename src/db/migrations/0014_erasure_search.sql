-- The search of an erasure follows keys that it finds in bodies, and is never ended by a step that did not see the latest request.

alter table erasures
  -- Whether the search runs once more after it: a key was found or the erasure was requested while it ran.
  add column search_again boolean not null default false,
  -- The keys that were found in webhooks, in bodies and in later facts. Their number is limited: an id with more is not one person's.
  add column followed_keys integer not null default 0;
