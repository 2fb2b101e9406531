-- Webhooks that the service sends: endpoints of apps, the outbox of messages, and the attempts at them (docs/webhooks-out.md).
-- A trigger writes a message with the fact that it is about, in the same statement, and only where an active endpoint of the app
-- asks for its type.

create domain webhook_endpoint_id as text collate "C" check (value ~ '^whe_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain webhook_message_id  as text collate "C" check (value ~ '^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table webhook_endpoints (
  id                 webhook_endpoint_id primary key,
  app_id             app_id not null references apps (id),
  url                text not null check (length(url) between 1 and 2000),
  description        text check (length(description) between 1 and 200),
  event_types        text[] not null check (cardinality(event_types) > 0),
  -- The secrets that sign, encrypted with SECRETS_KEY. The previous one also signs until it expires.
  secret_id          secret_id not null,
  ciphertext         bytea not null,
  encryption_key_id  text not null,
  secret_created_at  timestamptz not null default now(),
  previous_ciphertext        bytea,
  previous_encryption_key_id text,
  previous_expires_at        timestamptz,
  -- Null while the endpoint is active.
  deactivated_at     timestamptz,
  deactivated_reason text check (deactivated_reason in ('by_request', 'failing', 'gone')),
  -- Since when every attempt has failed. Null after a success, and before the first attempt.
  failing_since      timestamptz,
  -- While it fails: the attempts that failed, not counting those that were made at the same time, and when one message may try again.
  failures           integer not null default 0 check (failures >= 0),
  next_probe_at      timestamptz,
  created_at         timestamptz not null default now(),
  unique (app_id, id),
  check ((deactivated_at is null) = (deactivated_reason is null)),
  check ((previous_ciphertext is null) = (previous_encryption_key_id is null)
         and (previous_ciphertext is null) = (previous_expires_at is null))
);
create index webhook_endpoints_by_app on webhook_endpoints (app_id, created_at, id);
create index webhook_endpoints_active on webhook_endpoints (app_id) where deactivated_at is null;

-- One row per fact and endpoint. The constraint makes it one, whatever writes the fact twice.
create table webhook_messages (
  id              webhook_message_id primary key,
  app_id          app_id not null,
  endpoint_id     webhook_endpoint_id not null,
  type            text not null check (type in ('commission.created', 'commission.matured', 'commission.reversed',
                  'payout.created', 'delivery.stuck', 'webhook.test')),
  -- The id of the commission, payout or delivery. Null for a test.
  subject_id      text collate "C",
  -- The data of the message, fixed when the fact is written. It has no id of a user.
  data            jsonb not null,
  status          text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts        integer not null default 0 check (attempts >= 0),
  -- The attempts before a person sent the message again. Those after it have waits of their own.
  earlier_attempts integer not null default 0 check (earlier_attempts between 0 and attempts),
  next_attempt_at timestamptz default now(),
  -- When the relay starts the workflow, if it has not been started or was lost.
  relay_at        timestamptz default now(),
  last_problem    text,
  created_at      timestamptz not null default now(),
  completed_at    timestamptz,
  unique (endpoint_id, type, subject_id),
  foreign key (app_id, endpoint_id) references webhook_endpoints (app_id, id),
  check ((status = 'pending') = (completed_at is null)),
  check ((status = 'pending') = (next_attempt_at is not null) and (status = 'pending') = (relay_at is not null))
);
create index webhook_messages_by_created on webhook_messages (app_id, created_at desc, id desc);
create index webhook_messages_by_endpoint on webhook_messages (app_id, endpoint_id, created_at desc, id desc);
-- Most messages are delivered, so this index is small.
create index webhook_messages_by_status on webhook_messages (app_id, status, created_at desc, id desc) where status <> 'delivered';
create index webhook_messages_to_relay on webhook_messages (relay_at) where completed_at is null;
create index webhook_messages_next_attempt on webhook_messages (next_attempt_at) where completed_at is null;

create table webhook_attempts (
  message_id  webhook_message_id not null references webhook_messages (id) on delete cascade,
  number      integer not null check (number > 0),
  started_at  timestamptz not null,
  duration_ms integer not null check (duration_ms >= 0),
  -- Null when there was no response.
  status_code integer,
  -- Why the attempt failed. Null for a success.
  problem     text,
  -- The first part of the response.
  response    text check (length(response) <= 2048),
  primary key (message_id, number)
);

-- The messages that wait fail with their endpoint, in the statement that deactivates it: none is sent when it is activated again.
create function fail_waiting_messages() returns trigger language plpgsql as $$
begin
  update webhook_messages
     set status = 'failed', completed_at = now(), next_attempt_at = null, relay_at = null, last_problem = 'The endpoint is not active.'
   where app_id = new.app_id and endpoint_id = new.id and completed_at is null;
  return null;
end $$;
create trigger webhook_endpoints_fail_waiting after update of deactivated_at on webhook_endpoints
  for each row when (old.deactivated_at is null and new.deactivated_at is not null) execute function fail_waiting_messages();

alter table retention_progress
  drop constraint retention_progress_kind_check,
  add constraint retention_progress_kind_check
    check (kind in ('idempotency_keys', 'identities', 'refused_counters', 'user_agents', 'bodies', 'webhook_messages'));

---------------------------------------------------------------------------------------------------------------------
-- The outbox

-- Returns a new id: the prefix and a UUIDv7, like the ids that the application generates.
create function new_webhook_message_id() returns webhook_message_id language plpgsql volatile as $$
declare
  random_hex text := replace(gen_random_uuid()::text, '-', '');
  bits bit(128) := ('x' || lpad(to_hex(epoch_ms(clock_timestamp())), 12, '0') || '7' || substr(random_hex, 14))::bit(128);
begin
  -- 26 digits of five bits; the first has only the upper three.
  return 'msg_' || (select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', digit + 1, 1), '' order by n)
                      from (select n, case n when 0 then substring(bits from 1 for 3)::bit(3)::integer
                                             else substring(bits from n * 5 - 1 for 5)::bit(5)::integer end as digit
                              from generate_series(0, 25) n) d);
end $$;

-- Returns an amount in US dollars as exact text: 1999 cents are 19.99.
create function usd_text(amount cents) returns text language sql immutable parallel safe as $$
  select (amount::numeric / 100)::numeric(20, 2)::text
$$;

-- Writes a message for each commission that was inserted or has matured, and for each active endpoint that asks for it. Without
-- any active endpoint it costs one look-up in an empty index. A statement is a transaction of its own, so what it matures has
-- matured now.
create function announce_commissions() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_endpoints where deactivated_at is null) then
    return null;
  end if;
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  select new_webhook_message_id(), c.app_id, e.id, t.type, c.id,
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
create trigger commissions_announce_new after insert on commissions referencing new table as changed
  for each statement execute function announce_commissions();
create trigger commissions_announce_matured after update on commissions referencing new table as changed
  for each statement execute function announce_commissions();

-- A payout that was recorded from its file was announced when another history of the database made it.
create function announce_payout() returns trigger language plpgsql as $$
begin
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  select new_webhook_message_id(), new.app_id, e.id, 'payout.created', new.id,
         jsonb_build_object(
           'payoutId', new.id, 'affiliateId', new.affiliate_id, 'itemCount', new.item_count,
           'total', usd_text(new.total_cents), 'totalCents', new.total_cents, 'currency', 'USD')
    from webhook_endpoints e
   where e.app_id = new.app_id and e.deactivated_at is null and 'payout.created' = any(e.event_types)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;
create trigger payouts_announce after insert on payouts
  for each row when (new.recorded_at is null) execute function announce_payout();

-- A delivery is stuck when an attempt at it fails more than half a minute after its receipt. It is announced once.
create function announce_stuck_delivery() returns trigger language plpgsql as $$
begin
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  select new_webhook_message_id(), new.app_id, e.id, 'delivery.stuck', new.id,
         jsonb_build_object(
           'deliveryId', new.id, 'provider', new.provider, 'eventId', new.event_id,
           'receivedAt', epoch_ms(new.received_at), 'problem', new.last_error)
    from webhook_endpoints e
   where e.app_id = new.app_id and e.deactivated_at is null and 'delivery.stuck' = any(e.event_types)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;
create trigger deliveries_announce_stuck after update of last_error on deliveries
  for each row when (new.last_error is not null and new.completed_at is null and not new.is_self_test
                     and new.received_at < now() - interval '30 seconds')
  execute function announce_stuck_delivery();
