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

/** How many rows of each fact were new. */
export interface AppendedFacts {
  readonly event: number;
  readonly payment: number;
  readonly adjustment: number;
  readonly users: number;
  readonly userKeys: number;
  readonly userLinks: number;
  readonly aliases: number;
  readonly transfers: number;
}

/**
 * Commits everything that an event tells as facts, in one statement: the event, its payment or adjustment, the users
 * who may have paid, other names of payments. `duplicate` when another delivery told the same event before; the same
 * delivery again goes on with its own event.
 */
export async function recordEventFacts(sql: Sql, facts: EventFacts): Promise<'recorded' | 'duplicate'> {
  const { deliveryId } = await writeFacts(sql, facts, 'live');
  return deliveryId === facts.deliveryId ? 'recorded' : 'duplicate';
}

/**
 * Appends what is missing of an event's facts, also where the event itself is stored already; null when another delivery
 * told the event. What an event or an adjustment says stays; columns of the event that were empty are filled. A payment
 * that is new is nothing that just came in: it counts as looked at, so that only the rules of a later look attribute it.
 */
export async function appendEventFacts(sql: Sql, facts: EventFacts): Promise<AppendedFacts | null> {
  const { deliveryId, appended } = await writeFacts(sql, facts, 'reprocess');
  return deliveryId === facts.deliveryId ? appended : null;
}

async function writeFacts(
  sql: Sql,
  facts: EventFacts,
  mode: 'live' | 'reprocess',
): Promise<{ deliveryId: DeliveryId; appended: AppendedFacts }> {
  const { event, appId, environment } = facts;
  const { payment, adjustment } = event;
  const money = payment ?? adjustment;
  const store = money?.store ?? null;
  const paymentRef = payment?.ref ?? adjustment?.paymentRef ?? null;
  const earnsLater = environment === 'production' && payment !== null;
  const again = mode === 'reprocess';
  // A reprocess counts as the first look, so what it appends has the cause of a payment in which nobody was found.
  const unevaluated = again ? 'missing_user_id' : 'processing';
  const likelyCause =
    environment === 'production' && event.priceUnknown && payment === null
      ? 'price_unknown'
      : earnsLater
        ? unevaluated
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
  const samePayment = sql.fragment`
    p.app_id = ${appId} and p.environment = ${environment} and p.store = ${store} and p.ref = ${payment?.ref ?? null}`;

  // An event that tells once more of a payment has no cause of its own. Live, its evaluation clears it; a reprocess may find
  // nothing to evaluate.
  const firstCause = again
    ? sql.fragment`case when not exists (select from payments p where ${samePayment}) then ${likelyCause} end`
    : sql.fragment`${likelyCause}`;

  return await sql.one`
    with told as (
      insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                          product_id, customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
      values (${facts.eventId}, ${appId}, ${facts.deliveryId}, ${facts.source}, ${event.sourceEventId}, ${event.kind},
              ${environment}, ${instant(event.occurredAt)}, ${instant(facts.receivedAt)}, ${event.productId},
              ${event.userIds[0] ?? null}, ${store}, ${paymentRef}, ${money?.currency ?? null}, ${money?.amountMinor ?? null},
              ${money?.usdCents ?? null}, ${firstCause})
      on conflict (app_id, source, source_event_id) do nothing
      returning id, delivery_id
    ), ev as (
      -- Facts are one statement: an event that speaks of money has had its payment or adjustment from the beginning.
      select id, delivery_id, true as may_add_money from told
      union all
      select id, delivery_id, payment_ref is null from events where ${again}::boolean and delivery_id = ${facts.deliveryId}
    ), filled as (
      update events e
         set store = coalesce(e.store, ${store}), payment_ref = ${paymentRef}, currency = coalesce(e.currency, ${money?.currency ?? null}),
             amount_minor = coalesce(e.amount_minor, ${money?.amountMinor ?? null}::bigint),
             amount_cents = coalesce(e.amount_cents, ${money?.usdCents ?? null}::bigint),
             customer_user_id = coalesce(e.customer_user_id, ${event.userIds[0] ?? null}),
             likely_cause = ${firstCause}
       where ${again && money !== null}::boolean and e.delivery_id = ${facts.deliveryId} and e.payment_ref is null
    ), added as (
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                            only_anonymous_user, evaluated_at, likely_cause)
      select ${newId('payment')}, ${appId}, ${environment}, ${payment?.store ?? null}, ${payment?.ref ?? null}, ev.id,
             ${payment?.currency ?? null}, ${payment?.amountMinor ?? null}::bigint, ${payment?.usdCents ?? null}::bigint,
             ${instant(event.occurredAt)}, ${event.onlyAnonymousUserIds}, case when ${again}::boolean then now() end,
             ${again ? likelyCause : null}::text
        from ev where ${payment !== null}::boolean and ev.may_add_money
                  and not (${again}::boolean and exists (select from payments p where ${samePayment}))
      on conflict (app_id, environment, store, ref) do update set version = payments.version + 1
      returning id, xmax = 0 as is_new
    ), pay as (
      select id from added
      union all
      select p.id from payments p where ${again && payment !== null}::boolean and ${samePayment} and exists (select from ev)
    ), users as (
      insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
      select ${appId}, u."customerUserId", pay.id, ${environment}, u.position
        from pay, jsonb_to_recordset(${sql.json(users)}) u ("customerUserId" text, position int)
      on conflict do nothing
      returning 1
    ), keys as (
      insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
      select ${appId}, ${facts.source}, k."userKey", pay.id, ${environment}, k.position
        from pay, jsonb_to_recordset(${sql.json(keys)}) k ("userKey" text, position int)
      on conflict do nothing
      returning 1
    ), links as (
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      select ${appId}, ${environment}, ${facts.source}, l.key, l."customerUserId"
        from ev, jsonb_to_recordset(${sql.json(event.userLinks)}) l (key text, "customerUserId" text)
      on conflict do nothing
      returning 1
    ), transfers as (
      insert into user_transfers (app_id, event_id, role, customer_user_id)
      select ${appId}, ev.id, t.role, t."customerUserId"
        from ev, jsonb_to_recordset(${sql.json(transfers)}) t (role text, "customerUserId" text)
      on conflict do nothing
      returning 1
    ), aliases as (
      insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
      select ${appId}, ${environment}, a.store, a."aliasRef", a."paymentRef"
        from ev, jsonb_to_recordset(${sql.json(event.paymentAliases)}) a (store text, "aliasRef" text, "paymentRef" text)
      on conflict do nothing
      returning 1
    ), adj as (
      insert into adjustments as old (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                               amount_minor, usd_cents, occurred_at, event_id)
      select ${newId('adjustment')}, ${appId}, ${environment}, ${adjustment?.store ?? null}, ${adjustment?.ref ?? null},
             ${adjustment?.paymentRef ?? null}, ${adjustment?.kind ?? null}, ${adjustment?.state ?? null},
             ${adjustment?.rank ?? null}::int, ${adjustment?.reversesAll ?? false}::boolean, ${adjustment?.currency ?? null},
             ${adjustment?.amountMinor ?? null}::bigint, ${adjustment?.usdCents ?? null}::bigint,
             ${instant(event.occurredAt)}, ev.id
        from ev where ${adjustment !== null}::boolean and ev.may_add_money
      on conflict (app_id, environment, store, ref) do update
        set state = excluded.state, rank = excluded.rank, currency = excluded.currency, amount_minor = excluded.amount_minor,
            usd_cents = excluded.usd_cents, occurred_at = excluded.occurred_at, event_id = excluded.event_id
        where excluded.rank > old.rank
      returning 1
    )
    select t.delivery_id, jsonb_build_object(
             'event', (select count(*) from told), 'payment', (select count(*) from added where is_new),
             'adjustment', (select count(*) from adj), 'users', (select count(*) from users),
             'userKeys', (select count(*) from keys), 'userLinks', (select count(*) from links),
             'aliases', (select count(*) from aliases), 'transfers', (select count(*) from transfers)) as appended
      from (select delivery_id from ev
            union
            select delivery_id from events
             where app_id = ${appId} and source = ${facts.source} and source_event_id = ${event.sourceEventId}
               and not exists (select from told)) t`;
}
