-- Mails that have ended are removed after a time.
alter table retention_progress
  drop constraint retention_progress_kind_check,
  add constraint retention_progress_kind_check
    check (kind in ('idempotency_keys', 'identities', 'refused_counters', 'user_agents', 'bodies', 'webhook_messages', 'emails'));
