-- A statement may announce tens of thousands of commissions. The ids of its messages for an app have the same start, made once: making
-- each took a third of the time. They end in the number of the message, in seven hexadecimal digits, which are digits of an id, too. Each
-- app counts from one, so the number says nothing about others. A payout has at most 50,000 earnings, and the reversals and corrections
-- that are due; 268 million messages are more than one statement can write.
create or replace function announce_commissions() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_endpoints where deactivated_at is null) then
    return null;
  end if;
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  with starts as materialized (
    select a.app_id, left(new_webhook_message_id(), 23) as id_start
      from (select distinct app_id from changed) a
     where exists (select from webhook_endpoints e where e.app_id = a.app_id and e.deactivated_at is null)
  )
  select s.id_start || lpad(to_hex(row_number() over (partition by c.app_id)), 7, '0'), c.app_id, e.id, t.type, c.id,
         jsonb_build_object(
           'commissionId', c.id, 'kind', c.kind, 'affiliateId', c.affiliate_id, 'linkId', c.link_id, 'eventId', c.event_id,
           'reversesCommissionId', c.reverses_commission_id, 'amount', usd_text(c.amount_cents),
           'amountCents', c.amount_cents, 'currency', 'USD', 'rateBps', c.rate_bps,
           'occurredAt', epoch_ms(c.occurred_at), 'dueAt', epoch_ms(c.due_at))
    from changed c
    join starts s on s.app_id = c.app_id
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
