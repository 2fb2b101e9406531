import type { AppId, AttributionId, BindingId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './retries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Number of remembered users of one device that one statement binds. */
export const REMEMBERED_USERS_LIMIT = 200;
/** Batches per call. Far more users than any real device has; the limit stops abuse. */
const MAX_BATCHES = 5;

/** The binding of a user who was identified on a device. */
export interface UserBinding {
  readonly bindingId: BindingId;
  readonly attributionId: AttributionId;
  /** Whether this call created it. */
  readonly isNew: boolean;
}

/**
 * Records that a user was identified on a device, and binds the user to the device's attribution unless the user has a
 * binding: the first committed binding stays, even if it belongs to another device. The first identification time of
 * the pair stays too. Returns undefined when the device has no attribution.
 *
 * One statement does both, so that a process that dies leaves both or neither. If it sees no attribution, it runs again
 * after its commit: it then sees an install that committed meanwhile, and a later install sees the pair.
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
 * Binds all remembered users of a device without a binding to the device's attribution. Call it after the attribution
 * was committed: it sees users remembered before, and users remembered later see the attribution. Returns the bindings
 * of the device's users that are not healed yet, including those of other calls.
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
    // Fewer than a batch: these were all.
    if (waiting.length < REMEMBERED_USERS_LIMIT) break;
  }
  return [...toHeal];
}

/**
 * Marks a new binding as healed if there is nothing to heal: no earlier payment of the user waits for it, and the user
 * transferred no purchases. Returns whether the binding is healed. Call it after the binding was committed, so that a
 * payment recorded meanwhile either has seen the binding or is seen here.
 */
export async function markHealedIfNothingToHeal(sql: Sql, bindingId: BindingId): Promise<boolean> {
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
