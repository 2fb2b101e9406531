-- An app has at most twenty active endpoints. Each has a slot of its own while it is active, so statements that run at the same
-- time cannot create more. An endpoint that is not active keeps the number of its last slot, which others may have.
alter table webhook_endpoints add column slot smallint check (slot between 1 and 20);
-- An app may have more. Those that were created last are deactivated, and can be activated when a slot is free.
update webhook_endpoints e
   set deactivated_at = now(), deactivated_reason = 'by_request'
  from (select id, row_number() over (partition by app_id order by created_at, id) as number
          from webhook_endpoints where deactivated_at is null) n
 where n.id = e.id and n.number > 20;
update webhook_endpoints e
   set slot = case when e.deactivated_at is null then n.slot else 1 end
  from (select id, row_number() over (partition by app_id, deactivated_at is null order by created_at, id) as slot
          from webhook_endpoints) n
 where n.id = e.id;
alter table webhook_endpoints alter column slot set not null;
create unique index webhook_endpoints_slot on webhook_endpoints (app_id, slot) where deactivated_at is null;
-- The new index serves the same statements.
drop index webhook_endpoints_active;
-- A list has those that were deactivated last.
create index webhook_endpoints_inactive on webhook_endpoints (app_id, deactivated_at desc, id desc) where deactivated_at is not null;
