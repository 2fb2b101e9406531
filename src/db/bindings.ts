import type { AppId, AttributionId, BindingId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './repeat-after-race.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** How many remembered users of one device are bound with one statement. */
export const REMEMBERED_USERS_LIMIT = 200;
/** Batches of one call: far more users than one device ever has, and an end for one that pretends. */
const MAX_BATCHES = 5;

/** A user's binding, seen from a device. */
export interface UserBinding {
  readonly bindingId: BindingId;
  readonly attributionId: AttributionId;
  /** Whether this call made it. */
  readonly isNew: boolean;
}

/**
 * Remembers that a user was seen on a device, and binds the user to the device's attribution, unless the user has a
 * binding already: the first one committed stays, also when it leads to another device. The first time that the pair
 * was told stays, too. Undefined when the device has no attribution.
 *
 * One statement does both, so that a process that dies leaves both or neither. Where it sees no attribution, it looks
 * again after its commit: an install that commits meanwhile is seen then, and a later one sees the pair.
 */
export async function bindUser(
  sql: Sql,
  appId: AppId,
  deviceId: string,
  customerUserId: string,
  identifiedAt: number,
): Promise<UserBinding | undefined> {
  const id = newId('binding');
  const { binding } = await retryUntilVisible(async () => {
    const row = await sql.one<{
      wasRemembered: boolean;
      deviceAttributionId: AttributionId | null;
      bindingId: BindingId | null;
      attributionId: AttributionId | null;
    }>`
      with known as (
        select identified_at from identities
         where app_id = ${appId} and device_id = ${deviceId} and customer_user_id = ${customerUserId}
      ), remembered as (
        insert into identities (app_id, device_id, customer_user_id, identified_at)
        select ${appId}::text, ${deviceId}::text, ${customerUserId}::text, ${instant(identifiedAt)}::timestamptz
         where not exists (select from known)
        on conflict do nothing
      ), device as (
        select id from attributions where app_id = ${appId} and device_id = ${deviceId}
      ), stored as (
        select id, attribution_id from bindings where app_id = ${appId} and customer_user_id = ${customerUserId}
      ), added as (
        insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
        select ${id}::text, ${appId}::text, ${customerUserId}::text, id,
               coalesce((select identified_at from known), ${instant(identifiedAt)}::timestamptz)
          from device where not exists (select from stored)
        on conflict (app_id, customer_user_id) do nothing
        returning id, attribution_id
      )
      select exists (select from known) as was_remembered, (select id from device) as device_attribution_id,
             b.id as binding_id, b.attribution_id
        from (select 1) always left join (select * from stored union all select * from added) b on true`;
    if (row.deviceAttributionId === null) return row.wasRemembered ? { binding: undefined } : undefined;
    if (row.bindingId === null || row.attributionId === null) return undefined;
    return {
      binding: { bindingId: row.bindingId, attributionId: row.attributionId, isNew: row.bindingId === id },
    };
  });
  return binding;
}

/**
 * Binds all remembered users of a device that have no binding yet to the device's attribution. To be called after the
 * attribution was committed: a user remembered before that is seen here, one remembered later sees the attribution.
 * Answers the bindings of the device's users that have still to be healed, whoever made them.
 */
export async function bindRememberedUsers(sql: Sql, appId: AppId, deviceId: string): Promise<BindingId[]> {
  const toHeal = new Set<BindingId>();
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const waiting = await sql<{ customerUserId: string; bindingId: BindingId | null }>`
      select i.customer_user_id, b.id as binding_id
        from identities i
        join attributions t on t.app_id = i.app_id and t.device_id = i.device_id
        left join bindings b on b.app_id = i.app_id and b.customer_user_id = i.customer_user_id
       where i.app_id = ${appId} and i.device_id = ${deviceId} and b.healed_at is null
       order by b.id nulls first limit ${REMEMBERED_USERS_LIMIT}`;
    const unbound = waiting.filter(({ bindingId }) => bindingId === null);
    for (const { bindingId } of waiting) if (bindingId !== null) toHeal.add(bindingId);
    if (unbound.length === 0) break;
    const pairs = unbound.map(({ customerUserId }) => ({ id: newId('binding'), user: customerUserId }));
    const bound = await sql<{ id: BindingId }>`
      with wanted as (
        select w.id, w."user", t.id as attribution_id, i.identified_at
          from jsonb_to_recordset(${sql.json(pairs)}) w (id text, "user" text)
          join attributions t on t.app_id = ${appId} and t.device_id = ${deviceId}
          join identities i on i.app_id = t.app_id and i.device_id = t.device_id and i.customer_user_id = w."user"
      ), added as (
        insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
        select id, ${appId}::text, "user", attribution_id, identified_at from wanted order by "user"
        on conflict (app_id, customer_user_id) do nothing
        returning id
      )
      select id from added
      union
      select b.id from bindings b join wanted w on w.id = b.id`;
    for (const { id } of bound) toHeal.add(id);
    // Fewer than a batch: nobody else was waiting when this began.
    if (waiting.length < REMEMBERED_USERS_LIMIT) break;
  }
  return [...toHeal];
}

/**
 * Whether a new binding has nothing to heal, and notes that at once: no earlier payment of the user waits for it, and he
 * gave none away. To be called after the binding was committed, so that a payment recorded meanwhile has either seen it
 * or is seen here.
 */
export async function markHealedIfNothingWaits(sql: Sql, bindingId: BindingId): Promise<boolean> {
  const row = await sql.one<{ healed: boolean }>`
    with marked as (
      update bindings b set healed_at = now()
       where b.id = ${bindingId} and b.healed_at is null
         and not exists (
           select from (
               select pu.payment_id from payment_users pu
                where pu.app_id = b.app_id and pu.customer_user_id = b.customer_user_id
               union all
               select k.payment_id
                 from user_links l join payment_user_keys k on k.app_id = l.app_id and k.source = l.source and k.user_key = l.user_key
                where l.app_id = b.app_id and l.customer_user_id = b.customer_user_id) u
             join payments p on p.id = u.payment_id
            where p.environment = 'production' and p.earned_cents = 0
              and (p.likely_cause is not null or p.evaluated_at is null))
         and not exists (
           select from user_transfers g
            where g.app_id = b.app_id and g.customer_user_id = b.customer_user_id and g.role = 'giver')
      returning id
    )
    select exists (select from marked)
           or exists (select from bindings where id = ${bindingId} and healed_at is not null) as healed`;
  return row.healed;
}
