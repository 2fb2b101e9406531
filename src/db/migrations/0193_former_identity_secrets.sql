-- The ids of the last secrets before the current one: a rotation that is sent again after another one changes nothing.
alter table identity_secrets add column former_secret_ids text[] not null default '{}';
