-- An app has at most twenty endpoints, active or not. Each has a slot of its own until a person deletes it. One that is deleted has
-- neither a slot nor a secret; its row goes when the last of its messages is removed.
drop index webhook_endpoints_slot;
alter table webhook_endpoints
  alter column slot drop not null,
  drop constraint webhook_endpoints_deactivated_reason_check,
  add constraint webhook_endpoints_deactivated_reason_check
    check (deactivated_reason in ('by_request', 'failing', 'gone', 'deleted'));
-- The active endpoints of an app have slots, and then those that were deactivated last. Until now it could have more that are not
-- active: those are deleted.
update webhook_endpoints e
   set slot = case when n.number <= 20 then n.number end
  from (select id, row_number() over (partition by app_id order by deactivated_at desc nulls first, id) as number
          from webhook_endpoints) n
 where n.id = e.id;
update webhook_endpoints
   set deactivated_at = now(), deactivated_reason = 'deleted', ciphertext = '',
       previous_ciphertext = case when previous_ciphertext is not null then ''::bytea end
 where slot is null;
alter table webhook_endpoints
  add constraint webhook_endpoints_deleted_check check ((slot is null) = (deactivated_reason is not distinct from 'deleted'));
create unique index webhook_endpoints_slot on webhook_endpoints (app_id, slot) where slot is not null;
-- What is announced asks for the active endpoints only.
create index webhook_endpoints_active on webhook_endpoints (app_id) where deactivated_at is null;
create index webhook_endpoints_deleted on webhook_endpoints (deactivated_at) where slot is null;
-- The index of slots finds the endpoints that a list has.
drop index webhook_endpoints_inactive, webhook_endpoints_by_app;
