import type { Environment, NormalizedEvent } from '../domain/events.ts';
import type { AppId, DeliveryId, EventId } from '../domain/ids.ts';
import type { Fragment, Sql } from './sql.ts';

/** An event of a delivery, as it was read. */
export interface EventFacts {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly appId: AppId;
  readonly source: string;
  readonly environment: Environment;
  readonly receivedAt: number;
  /** Whether the event was made from a provider's export. Its payment then follows the rules of a later evaluation. */
  readonly isReconciled?: boolean;
  readonly event: NormalizedEvent;
}

/** A common table expression that inserts facts, and their number. */
interface FactsPart {
  readonly count: number;
  readonly expression: Fragment;
}

/** Returns common table expressions for use after another one. */
export function joined(sql: Sql, parts: readonly FactsPart[]): Fragment {
  return parts.reduce((before, { expression }) => sql.fragment`${before}, ${expression}`, sql.fragment``);
}

/**
 * The facts beside the money: users and provider keys of `payment`, and user links, transfers, codes and payment aliases of
 * `event`. Stored rows stay, but a user gets the first of the places that events give it: the order of delivery decides nothing.
 */
export function detailsOf(sql: Sql, { event, appId, environment, source }: EventFacts): FactsPart[] {
  const isPayment = event.payment !== null;
  const users = isPayment
    ? event.userIds.map((customerUserId, position) => ({ customerUserId, position }))
    : [];
  const keys = isPayment ? event.userKeys.map((userKey, position) => ({ userKey, position })) : [];
  // The anonymous ids are among the keys, but for placeholders.
  const beganBy = [...event.userIds, ...event.userKeys.filter((key) => event.anonymousUserIds.includes(key))];
  const begun = event.subscriptionCodes.flatMap((code) =>
    (beganBy.length === 0 ? [null] : beganBy).map((customerUserId) => ({ ...code, customerUserId })),
  );
  const transfers =
    environment === 'production' && event.transfer !== null
      ? [
          ...event.transfer.from.map((customerUserId) => ({ role: 'giver', customerUserId })),
          ...event.transfer.to.map((customerUserId) => ({ role: 'receiver', customerUserId })),
        ]
      : [];
  return [
    {
      count: users.length,
      expression: sql.fragment`
        users as (
          insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
          select ${appId}, u."customerUserId", payment.id, ${environment}, u.position
            from payment, jsonb_to_recordset(${sql.json(users)}) u ("customerUserId" text, position int)
           order by u."customerUserId"
          on conflict (app_id, customer_user_id, payment_id) do update set position = excluded.position
           where excluded.position < payment_users.position
          returning 1)`,
    },
    {
      count: keys.length,
      expression: sql.fragment`
        user_keys as (
          insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
          select ${appId}, ${source}, k."userKey", payment.id, ${environment}, k.position
            from payment, jsonb_to_recordset(${sql.json(keys)}) k ("userKey" text, position int)
           order by k."userKey"
          on conflict (app_id, user_key, payment_id, source) do update set position = excluded.position
           where excluded.position > payment_user_keys.position
          returning 1)`,
    },
    {
      count: event.userLinks.length,
      expression: sql.fragment`
        links as (
          insert into user_links (app_id, environment, source, user_key, customer_user_id)
          select ${appId}, ${environment}, ${source}, l.key, l."customerUserId"
            from event, jsonb_to_recordset(${sql.json(event.userLinks)}) l (key text, "customerUserId" text)
          on conflict do nothing
          returning 1)`,
    },
    {
      count: transfers.length,
      expression: sql.fragment`
        transfers as (
          insert into user_transfers (app_id, event_id, role, customer_user_id)
          select ${appId}, event.id, t.role, t."customerUserId"
            from event, jsonb_to_recordset(${sql.json(transfers)}) t (role text, "customerUserId" text)
          on conflict do nothing
          returning 1)`,
    },
    {
      count: event.codes.length,
      expression: sql.fragment`
        codes as (
          insert into payment_codes (app_id, environment, store, payment_ref, namespace, value)
          select ${appId}, ${environment}, c.store, c."paymentRef", c.namespace, c.value
            from event, jsonb_to_recordset(${sql.json(event.codes)}) c (store text, "paymentRef" text, namespace text, value text)
          on conflict do nothing
          returning 1)`,
    },
    {
      count: begun.length,
      expression: sql.fragment`
        subscription_codes as (
          insert into subscription_codes (app_id, environment, source, user_key, namespace, value, used_at, customer_user_id)
          select ${appId}, ${environment}, ${source}, c."userKey", c.namespace, c.value, to_timestamp(c."usedAt" / 1000.0), c."customerUserId"
            from event, jsonb_to_recordset(${sql.json(begun)}) c ("userKey" text, namespace text, value text, "usedAt" bigint, "customerUserId" text)
          on conflict do nothing
          returning 1)`,
    },
    {
      count: event.paymentAliases.length,
      expression: sql.fragment`
        aliases as (
          insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
          select ${appId}, ${environment}, a.store, a."aliasRef", a."paymentRef"
            from event, jsonb_to_recordset(${sql.json(event.paymentAliases)}) a (store text, "aliasRef" text, "paymentRef" text)
          on conflict do nothing
          returning 1)`,
    },
  ];
}
