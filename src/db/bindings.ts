import { USERS_PER_DEVICE } from '../domain/attribution.ts';
import type { AffiliateId, AppId, AttributionId, BindingId } from '../domain/ids.ts';
import { isSomebody } from '../domain/user-ids.ts';
import { isErased } from './erased-identifiers.ts';
import { newId } from './new-id.ts';
import { retryAfterConflict, retryUntilVisible } from './conflict-retries.ts';
import { shareStatements } from './shared-statements.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A user who was identified on an attributed device. */
export interface IdentifiedUser {
  /** The attribution of the device. The user may be bound to that of another device. */
  readonly attributionId: AttributionId;
  readonly affiliateId: AffiliateId;
  /** The binding that this call created. Null if the user has another one, or was erased. */
  readonly newBindingId: BindingId | null;
}

/** What `identify` reports. */
export interface Identity {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly customerUserId: string;
  /** Epoch ms. */
  readonly identifiedAt: number;
  /** The keyed hash of the caller's address. Null if it is unknown. */
  readonly addressHash: Buffer | null;
  /** The keyed hash of the user id. Nothing is recorded of an erased user. */
  readonly userHash: Buffer;
}

interface BoundRow {
  readonly wasRemembered: boolean;
  readonly isRefused: boolean;
  readonly isErased: boolean;
  readonly deviceAttributionId: AttributionId | null;
  readonly deviceAffiliateId: AffiliateId;
  readonly bindingId: BindingId | null;
}

/**
 * Records that a user was identified on a device, and binds the user to the device's attribution unless the user has a
 * binding: the first committed binding stays, even if it belongs to another device. The first identification time of
 * the pair stays too. Returns undefined when the device has no attribution, and `too_many_users` when the device has as many users as it
 * can have and this is another one; nothing is then recorded, nor of an erased user. The result depends on the device only: anybody
 * can name any user.
 *
 * One statement does both, so that a process that dies leaves both or neither. If it sees no attribution, it runs again
 * after its commit: it then sees an install that committed meanwhile, and a later install sees the pair. Two statements
 * that take the same position of a device conflict, and the loser runs again.
 */
export async function bindUser(
  sql: Sql,
  identity: Identity,
): Promise<IdentifiedUser | 'too_many_users' | undefined> {
  const id = newId('binding');
  const { identified } = await retryUntilVisible(async () => {
    const row = await retryAfterConflict(
      ['identities_one_position'],
      () => insertBinding(sql, id, identity),
      USERS_PER_DEVICE + 1,
    );
    if (row.isRefused) return { identified: 'too_many_users' as const };
    const { deviceAttributionId: attributionId, deviceAffiliateId: affiliateId } = row;
    if (attributionId === null)
      return row.wasRemembered || row.isErased ? { identified: undefined } : undefined;
    if (row.bindingId === null && !row.isErased) return undefined;
    return {
      identified: { attributionId, affiliateId, newBindingId: row.bindingId === id ? row.bindingId : null },
    };
  });
  return identified;
}

async function insertBinding(
  sql: Sql,
  id: BindingId,
  { appId, deviceId, customerUserId, identifiedAt, addressHash, userHash }: Identity,
): Promise<BoundRow> {
  return await sql.one<BoundRow>`
    with erased as materialized (
      select ${isErased(sql, appId, [userHash], ['user'])} as is_erased
    ), known as (
      select identified_at from identities
       where app_id = ${appId} and device_id = ${deviceId} and customer_user_id = ${customerUserId}
    ), free as (
      select min(p) as position from generate_series(1, ${USERS_PER_DEVICE}::integer) p
       where not exists (select from identities i where i.app_id = ${appId} and i.device_id = ${deviceId} and i.position = p)
    ), remembered as (
      insert into identities (app_id, device_id, customer_user_id, position, identified_at, address_hash)
      select ${appId}::text, ${deviceId}::text, ${customerUserId}::text, position, ${instant(identifiedAt)}::timestamptz,
             ${addressHash}::bytea
        from free where position is not null and not exists (select from known) and not (select is_erased from erased)
      on conflict (app_id, device_id, customer_user_id) do nothing
    ), device as (
      select id, affiliate_id from attributions where app_id = ${appId} and device_id = ${deviceId}
    ), stored as (
      select id, attribution_id from bindings where app_id = ${appId} and customer_user_id = ${customerUserId}
    ), refused as (
      select from free
       where position is null and not exists (select from known)
         and not exists (select from stored join device on device.id = stored.attribution_id)
    ), added as (
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
      select ${id}::text, ${appId}::text, ${customerUserId}::text, id,
             coalesce((select identified_at from known), ${instant(identifiedAt)}::timestamptz)
        from device
       where not exists (select from stored) and not exists (select from refused) and not (select is_erased from erased)
      on conflict (app_id, customer_user_id) do nothing
      returning id
    )
    select exists (select from known) as was_remembered, exists (select from refused) as is_refused,
           (select is_erased from erased) as is_erased,
           (select id from device) as device_attribution_id, (select affiliate_id from device) as device_affiliate_id,
           b.id as binding_id
      from (select 1) always left join (select id from stored union all select id from added) b on true`;
}

interface Device {
  readonly appId: AppId;
  readonly deviceId: string;
}

/** A user of a device who has no binding yet, or one that is not healed. */
interface WaitingUser {
  readonly customerUserId: string;
  readonly bindingId: BindingId | null;
}

/** Returns the waiting users of attributed devices. */
async function listWaitingUsersOfDevices(
  sql: Sql,
  devices: readonly Device[],
): Promise<(readonly WaitingUser[])[]> {
  const waiting = await sql<WaitingUser & { number: number }>`
    select d.number::int, i.customer_user_id, b.id as binding_id
      from unnest(${devices.map(({ appId }) => appId)}::text[], ${devices.map(({ deviceId }) => deviceId)}::text[])
           with ordinality d (app_id, device_id, number)
     cross join lateral (
       select id from attributions x where x.app_id = d.app_id and x.device_id = d.device_id offset 0) t
     cross join lateral (
       select customer_user_id from identities x where x.app_id = d.app_id and x.device_id = d.device_id offset 0) i
      left join lateral (
        select id, healed_at from bindings x
         where x.app_id = d.app_id and x.customer_user_id = i.customer_user_id offset 0) b on true
     where b.healed_at is null`;
  const real = waiting.filter(isSomebody);
  return devices.map((_, index) => real.filter(({ number }) => number === index + 1));
}

const listWaitingUsers = shareStatements(listWaitingUsersOfDevices, {
  keyOf: ({ appId, deviceId }: Device) => `${appId} ${deviceId}`,
  repeated: 'share',
});

/**
 * Binds all remembered users of a device without a binding to the device's attribution. Call it after the attribution
 * was committed: it sees users remembered before, and users remembered later see the attribution. Returns the bindings
 * of the device's users that are not healed yet, including those of other calls.
 */
export async function bindRememberedUsers(sql: Sql, appId: AppId, deviceId: string): Promise<BindingId[]> {
  const waiting = await listWaitingUsers(sql, { appId, deviceId });
  const toHeal = new Set(waiting.flatMap(({ bindingId }) => bindingId ?? []));
  const unbound = waiting.filter(({ bindingId }) => bindingId === null);
  if (unbound.length === 0) return [...toHeal];
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
  return [...toHeal];
}

/**
 * Marks the bindings among these that have nothing to heal. Returns whether each of them is healed. One that another statement has
 * locked is left to its heal, so that it delays none of the others.
 */
async function markBindingsHealed(sql: Sql, bindingIds: readonly BindingId[]): Promise<boolean[]> {
  const healed = await sql<{ id: BindingId }>`
    with locked as materialized (
      select b.id, b.app_id, b.customer_user_id, b.key_source, b.healed_at
        from unnest(${bindingIds}::text[]) i
       cross join lateral (select * from bindings x where x.id = i offset 0 for no key update skip locked) b
    ), marked as (
      update bindings m set healed_at = now()
        from locked b
       where m.id = b.id and b.healed_at is null
         and not exists (
           select from (
               select pu.payment_id from payment_users pu
                where pu.app_id = b.app_id and pu.customer_user_id = b.customer_user_id
               union all
               select k.payment_id
                 from user_links l join payment_user_keys k on k.app_id = l.app_id and k.source = l.source and k.user_key = l.user_key
                where l.app_id = b.app_id and l.customer_user_id = b.customer_user_id
               union all
               select k.payment_id from payment_user_keys k
                where b.key_source is not null and k.app_id = b.app_id and k.user_key = b.customer_user_id) u
             join payments p on p.id = u.payment_id
            where p.environment = 'production' and p.earned_cents = 0
              and (p.likely_cause is not null or p.evaluated_at is null
                   -- Another row of the same payment may wait, and not name the user itself.
                   or (p.binding_id is null and (
                     select true from payment_aliases l
                      where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.alias_ref = p.ref
                      limit 1))))
         and not exists (
           select from user_transfers g
            where g.app_id = b.app_id and g.customer_user_id = b.customer_user_id and g.role = 'giver')
         and not exists (
           select from user_links l
            where b.key_source is not null and l.app_id = b.app_id and l.environment = 'production' and l.user_key = b.customer_user_id)
         and not exists (
           select from payment_user_keys k join payment_users w on w.payment_id = k.payment_id
            where b.key_source is not null and k.app_id = b.app_id and k.user_key = b.customer_user_id
              and k.environment = 'production')
      returning m.id
    )
    select id from marked
    union all
    select id from locked where healed_at is not null`;
  const ids = new Set(healed.map(({ id }) => id));
  return bindingIds.map((id) => ids.has(id));
}

/**
 * Marks a new binding as healed if there is nothing to heal: no earlier payment of the user waits for it, the user transferred no
 * purchases, and nobody has the key that it is of. Returns whether the binding is healed. Call it after the binding was committed, so that a
 * payment recorded meanwhile either has seen the binding or is seen here.
 */
export const markHealedIfNothingToHeal = shareStatements(markBindingsHealed, {
  keyOf: (bindingId) => bindingId,
  repeated: 'share',
});
