-- A statement may announce tens of thousands of commissions. The ids of its messages have the same start, made once: making each took a
-- third of the time. They end in the number of the row, in six hexadecimal digits, which are digits of an id, too. A payout has at most
-- 50,000 rows and an app 20 endpoints, so the digits suffice.
create or replace function announce_commissions() returns trigger language plpgsql as $$
declare
  id_start text;
begin
  if not exists (select from webhook_endpoints where deactivated_at is null) then
    return null;
  end if;
  id_start := left(new_webhook_message_id(), 24);
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  select id_start || lpad(to_hex(row_number() over ()), 6, '0'), c.app_id, e.id, t.type, c.id,
         jsonb_build_object(
           'commissionId', c.id, 'kind', c.kind, 'affiliateId', c.affiliate_id, 'linkId', c.link_id, 'eventId', c.event_id,
           'reversesCommissionId', c.reverses_commission_id, 'amount', usd_text(c.amount_cents),
           'amountCents', c.amount_cents, 'currency', 'USD', 'rateBps', c.rate_bps,
           'occurredAt', epoch_ms(c.occurred_at), 'dueAt', epoch_ms(c.due_at))
    from changed c
   cross join lateral (
     select case when tg_op = 'UPDATE' then 'commission.matured'
                 when c.kind = 'earning' then 'commission.created' else 'commission.reversed' end as type) t
    join webhook_endpoints e on e.app_id = c.app_id and e.deactivated_at is null and t.type = any(e.event_types)
   where tg_op = 'INSERT'
      -- The rows of a payout that is recorded from its file matured in another history of the database.
      or c.matured_at = now() and not exists (select from payouts p where p.id = c.payout_id and p.recorded_at is not null)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;
-- The relay finds what is due by endpoint (webhook_messages_open). Each message wrote an entry here with each of its changes.
drop index webhook_messages_to_relay;
