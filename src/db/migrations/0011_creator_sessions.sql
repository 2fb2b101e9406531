-- Sessions of creators, and the links that start them. They have tables of their own, so that the token of a creator is
-- never found where a session of an account is looked up.

create table creator_sign_in_links (
  token_sha256 bytea primary key check (length(token_sha256) = 32),
  app_id       app_id not null,
  affiliate_id affiliate_id not null,
  created_at   timestamptz not null,
  expires_at   timestamptz not null check (expires_at > created_at),
  -- Chat apps open links in browsers of their own, so a link starts several sessions.
  uses_left    integer not null check (uses_left >= 0),
  revoked_at   timestamptz,
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create index creator_sign_in_links_by_affiliate on creator_sign_in_links (affiliate_id);
create index creator_sign_in_links_by_expiry on creator_sign_in_links (expires_at);

create table creator_sessions (
  id           session_id primary key,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  app_id       app_id not null,
  affiliate_id affiliate_id not null,
  user_agent   text check (length(user_agent) <= 512),
  created_at   timestamptz not null,
  -- Updated at most once a minute.
  last_used_at timestamptz not null,
  expires_at   timestamptz not null check (expires_at > created_at),
  ended_at     timestamptz,
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create index creator_sessions_by_affiliate on creator_sessions (affiliate_id, created_at desc, id desc);
create index creator_sessions_by_expiry on creator_sessions (expires_at);
