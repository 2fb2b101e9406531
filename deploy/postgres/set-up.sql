-- Run by set-up.sh, which passes the passwords on standard input.
-- Another session may run this file at the same moment.
select pg_advisory_lock(hashtext('tributary set-up')) \g /dev/null

select format('create role %I login', name)
  from unnest(array['tributary_owner', 'tributary_service', 'temporal']) roles (name)
 where not exists (select from pg_roles where rolname = name) \gexec

-- psql sends a verifier instead of the password, so that no log of the server has it.
\password tributary_owner
\password tributary_service
\password temporal

-- Only the owner of a database, or a member of that role, may create it. A superuser needs no membership.
select format('grant %I to current_user', name)
  from unnest(array['tributary_owner', 'temporal']) roles (name)
 where not pg_has_role(current_user, name, 'member') \gexec

select format('create database %I owner %I', name, owner)
  from (values (:'database', 'tributary_owner'), ('temporal', 'temporal'), ('temporal_visibility', 'temporal')) databases (name, owner)
 where not exists (select from pg_database where datname = name) \gexec

-- By default everybody may connect to every database.
select format('revoke connect on database %I from public', name)
  from unnest(array[:'database', 'temporal', 'temporal_visibility']) databases (name) \gexec
select format('grant connect on database %I to tributary_service', :'database') \gexec

\connect :database
-- The role of the service reads and writes rows, and changes nothing else: of tables that exist, and of those of later migrations.
grant select, insert, update, delete on all tables in schema public to tributary_service;
alter default privileges for role tributary_owner in schema public
  grant select, insert, update, delete on tables to tributary_service;
