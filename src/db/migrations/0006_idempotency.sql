-- What a call with an Idempotency-Key came to, for 24 hours. The row is written before the call does anything and holds
-- the seed of everything that the call makes up, so that a call cut off in between is run again to the same end.
create table idempotency_keys (
  account_id      account_id not null references accounts (id),
  idempotency_key text not null check (length(idempotency_key) between 1 and 255),
  -- Method, path, query and body.
  request_sha256  bytea not null check (length(request_sha256) = 32),
  requested_at    timestamptz not null,
  -- AES-256-GCM, as in webhook_secrets; ids and new keys are derived from it.
  seed            bytea not null,
  seed_key_id     text not null,
  -- Who runs the call now, and until when nobody else may.
  claim_id        uuid not null,
  claimed_until   timestamptz not null,
  -- Status, headers and body, encrypted: a body may hold a key. Null until the call is done.
  answer          bytea,
  answer_key_id   text,
  expires_at      timestamptz not null,
  primary key (account_id, idempotency_key),
  check ((answer is null) = (answer_key_id is null))
);
create index idempotency_keys_expired on idempotency_keys (expires_at);
