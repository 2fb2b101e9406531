-- An app has at most one endpoint of Slack, with a slot of its own beside the twenty others. It gets text about alerts, without a signature.
-- Its URL is a secret: `ciphertext` has it, and `url` only its host.
alter table webhook_endpoints
  add column is_slack boolean not null default false,
  drop constraint webhook_endpoints_slot_check,
  add constraint webhook_endpoints_slot_check check (slot between 0 and 20) not valid,
  add constraint webhook_endpoints_slack_check check
    (case when slot is null then true else is_slack = (slot = 0) end and (not is_slack or previous_ciphertext is null)) not valid;
