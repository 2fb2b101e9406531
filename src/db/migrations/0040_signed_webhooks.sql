-- Whether webhooks under a secret need a signature of the body beside the token. The ciphertext has both texts then.
alter table webhook_secrets add column is_signed boolean not null default false;
