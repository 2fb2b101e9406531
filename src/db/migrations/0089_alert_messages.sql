-- The messages about alerts.
alter table webhook_messages
  drop constraint webhook_messages_type_check,
  add constraint webhook_messages_type_check check
    (type in ('commission.created', 'commission.matured', 'commission.reversed', 'commission.adjusted', 'payout.created',
              'delivery.stuck', 'alert.opened', 'alert.closed', 'webhook.test')) not valid;
