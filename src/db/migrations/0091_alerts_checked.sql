-- Blocks neither reads nor writes.
alter table webhook_messages validate constraint webhook_messages_type_check;
alter table webhook_endpoints validate constraint webhook_endpoints_slot_check;
alter table webhook_endpoints validate constraint webhook_endpoints_slack_check;
