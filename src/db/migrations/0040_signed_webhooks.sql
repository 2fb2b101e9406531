-- Whether webhooks under a secret need a signature of the body beside the token: true, or null. The ciphertext has both texts then.
alter table webhook_secrets add column signed boolean check (signed);

drop trigger webhook_secrets_audit on webhook_secrets;
create trigger webhook_secrets_audit after insert or update of expires_at on webhook_secrets
  for each row execute function write_audit_row('webhook_secret', 'provider', 'provider environment signed expires_at');
