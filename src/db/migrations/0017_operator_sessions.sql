-- Sessions of the operator, and the links that start them. They have tables of their own, so that the token of another session
-- is never found where one of the operator is looked up.

create table operator_sessions (
  id           session_id primary key,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  user_agent   text check (length(user_agent) <= 512),
  created_at   timestamptz not null,
  -- Updated at most once a minute.
  last_used_at timestamptz not null,
  expires_at   timestamptz not null check (expires_at > created_at),
  ended_at     timestamptz
);
create index operator_sessions_by_expiry on operator_sessions (expires_at);

create table operator_sign_in_links (
  token_sha256 bytea primary key check (length(token_sha256) = 32),
  created_at   timestamptz not null,
  expires_at   timestamptz not null check (expires_at > created_at),
  -- The session that it started: a link is used once.
  session_id   session_id unique
);
create index operator_sign_in_links_by_expiry on operator_sign_in_links (expires_at);

-- The operator's list of accounts.
create index accounts_by_created on accounts (created_at desc, id desc);
