-- Sessions of the console: a browser's hold on one account key, and the one-time links that start one.

create domain session_id as text collate "C" check (value ~ '^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$');

alter table account_keys
  -- Who uses the key: a name of a person or a program.
  add column label text check (length(label) between 1 and 200),
  -- Updated at most once a minute.
  add column last_used_at timestamptz,
  -- The key of an account's sign-in links. Nobody has its text, so only sessions use it.
  add column is_console boolean not null default false,
  add constraint account_keys_of_account unique (account_id, id);
create unique index account_keys_one_console on account_keys (account_id) where is_console and revoked_at is null;

create table sessions (
  id            session_id primary key,
  token_sha256  bytea not null unique check (length(token_sha256) = 32),
  account_id    account_id not null references accounts (id),
  -- Its permissions are read at each request, and its end ends the session.
  key_id        key_id not null,
  user_agent    text check (length(user_agent) <= 512),
  created_at    timestamptz not null,
  -- Updated at most once a minute.
  last_used_at  timestamptz not null,
  expires_at    timestamptz not null check (expires_at > created_at),
  ended_at      timestamptz,
  -- Until when the session may pay, and the key on which its payouts are booked.
  raised_key_id key_id,
  raised_until  timestamptz,
  foreign key (account_id, key_id) references account_keys (account_id, id),
  foreign key (account_id, raised_key_id) references account_keys (account_id, id),
  check ((raised_key_id is null) = (raised_until is null))
);
create index sessions_by_account on sessions (account_id, created_at desc, id desc);
create index sessions_by_key on sessions (key_id);
create index sessions_by_expiry on sessions (expires_at);

create table sign_in_links (
  token_sha256 bytea primary key check (length(token_sha256) = 32),
  -- Null for a link that creates the account.
  account_id   account_id references accounts (id),
  key_id       key_id,
  created_at   timestamptz not null,
  expires_at   timestamptz not null check (expires_at > created_at),
  -- The session that it started: a link is used once.
  session_id   session_id unique,
  foreign key (account_id, key_id) references account_keys (account_id, id),
  check ((account_id is null) = (key_id is null))
);
create index sign_in_links_by_expiry on sign_in_links (expires_at);
