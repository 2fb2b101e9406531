-- The same of the signing secrets of an endpoint.
alter table webhook_endpoints add column former_secret_ids text[] not null default '{}';
