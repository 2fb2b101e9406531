import type { AppId, DeliveryId, EventId } from '../domain/ids.ts';
import type { Environment, NormalizedEvent } from '../domain/events.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export interface EventFacts {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly appId: AppId;
  readonly source: string;
  readonly environment: Environment;
  readonly receivedAt: number;
  readonly event: NormalizedEvent;
}

/**
 * Commits everything that an event tells as facts, in one statement: the event, its payment or adjustment, the users
 * who may have paid, other names of payments. `duplicate` when another delivery told the same event before; the same
 * delivery again goes on with its own event.
 */
export async function recordEventFacts(sql: Sql, facts: EventFacts): Promise<'recorded' | 'duplicate'> {
  const { event, appId, environment } = facts;
  const { payment, adjustment } = event;
  const money = payment ?? adjustment;
  const store = money?.store ?? null;
  const paymentRef = payment?.ref ?? adjustment?.paymentRef ?? null;
  const earnsLater = environment === 'production' && payment !== null;
  const likelyCause =
    environment === 'production' && event.priceUnknown && payment === null
      ? 'price_unknown'
      : earnsLater
        ? 'processing'
        : null;
  const users =
    payment === null ? [] : event.userIds.map((customerUserId, position) => ({ customerUserId, position }));
  const transfers =
    environment === 'production' && event.transfer !== null
      ? [
          ...event.transfer.from.map((customerUserId) => ({ role: 'giver', customerUserId })),
          ...event.transfer.to.map((customerUserId) => ({ role: 'receiver', customerUserId })),
        ]
      : [];
  const keys = payment === null ? [] : event.userKeys.map((userKey, position) => ({ userKey, position }));

  const row = await sql.one<{ deliveryId: DeliveryId }>`
    with ev as (
      insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                          product_id, customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
      values (${facts.eventId}, ${appId}, ${facts.deliveryId}, ${facts.source}, ${event.sourceEventId}, ${event.kind},
              ${environment}, ${instant(event.occurredAt)}, ${instant(facts.receivedAt)}, ${event.productId},
              ${event.userIds[0] ?? null}, ${store}, ${paymentRef}, ${money?.currency ?? null}, ${money?.amountMinor ?? null},
              ${money?.usdCents ?? null}, ${likelyCause})
      on conflict (app_id, source, source_event_id) do nothing
      returning id, delivery_id
    ), pay as (
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                            only_anonymous_user)
      select ${newId('payment')}, ${appId}, ${environment}, ${payment?.store ?? null}, ${payment?.ref ?? null}, ev.id,
             ${payment?.currency ?? null}, ${payment?.amountMinor ?? null}::bigint, ${payment?.usdCents ?? null}::bigint,
             ${instant(event.occurredAt)}, ${event.onlyAnonymousUserIds}
        from ev where ${payment !== null}::boolean
      on conflict (app_id, environment, store, ref) do update set version = payments.version + 1
      returning id
    ), users as (
      insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
      select ${appId}, u."customerUserId", pay.id, ${environment}, u.position
        from pay, jsonb_to_recordset(${sql.json(users)}) u ("customerUserId" text, position int)
      on conflict do nothing
    ), keys as (
      insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
      select ${appId}, ${facts.source}, k."userKey", pay.id, ${environment}, k.position
        from pay, jsonb_to_recordset(${sql.json(keys)}) k ("userKey" text, position int)
      on conflict do nothing
    ), links as (
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      select ${appId}, ${environment}, ${facts.source}, l.key, l."customerUserId"
        from ev, jsonb_to_recordset(${sql.json(event.userLinks)}) l (key text, "customerUserId" text)
      on conflict do nothing
    ), transfers as (
      insert into user_transfers (app_id, event_id, role, customer_user_id)
      select ${appId}, ev.id, t.role, t."customerUserId"
        from ev, jsonb_to_recordset(${sql.json(transfers)}) t (role text, "customerUserId" text)
      on conflict do nothing
    ), aliases as (
      insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
      select ${appId}, ${environment}, a.store, a."aliasRef", a."paymentRef"
        from ev, jsonb_to_recordset(${sql.json(event.paymentAliases)}) a (store text, "aliasRef" text, "paymentRef" text)
      on conflict do nothing
    ), adj as (
      insert into adjustments as old (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                               amount_minor, usd_cents, occurred_at, event_id)
      select ${newId('adjustment')}, ${appId}, ${environment}, ${adjustment?.store ?? null}, ${adjustment?.ref ?? null},
             ${adjustment?.paymentRef ?? null}, ${adjustment?.kind ?? null}, ${adjustment?.state ?? null},
             ${adjustment?.rank ?? null}::int, ${adjustment?.reversesAll ?? false}::boolean, ${adjustment?.currency ?? null},
             ${adjustment?.amountMinor ?? null}::bigint, ${adjustment?.usdCents ?? null}::bigint,
             ${instant(event.occurredAt)}, ev.id
        from ev where ${adjustment !== null}::boolean
      on conflict (app_id, environment, store, ref) do update
        set state = excluded.state, rank = excluded.rank, currency = excluded.currency, amount_minor = excluded.amount_minor,
            usd_cents = excluded.usd_cents, occurred_at = excluded.occurred_at, event_id = excluded.event_id
        where excluded.rank > old.rank
    )
    select delivery_id as "deliveryId" from ev
    union all
    select delivery_id from events
     where app_id = ${appId} and source = ${facts.source} and source_event_id = ${event.sourceEventId}
       and not exists (select from ev)`;
  return row.deliveryId === facts.deliveryId ? 'recorded' : 'duplicate';
}
