import { USERS_PER_DEVICE } from '../domain/attribution.ts';
import type { AffiliateId, AppId, AttributionId, BindingId } from '../domain/ids.ts';
import { isSomebody } from '../domain/user-ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import { InvalidResult } from './errors.ts';
import { lockLimit, shareStatements } from './shared-statements.ts';
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

/** An identity with the id of the binding that it may create. */
interface NamedIdentity extends Identity {
  readonly id: BindingId;
}

interface BoundRow {
  /** The place of the identity among those of the statement, from 1. */
  readonly number: number;
  readonly wasRemembered: boolean;
  readonly isRefused: boolean;
  readonly isErased: boolean;
  /** Whether another statement took the position of the device, or stored the pair. Nothing was written then. */
  readonly hasLost: boolean;
  readonly deviceAttributionId: AttributionId | null;
  readonly deviceAffiliateId: AffiliateId;
  readonly bindingId: BindingId | null;
}

/** One more than the races that a call can lose: one for each position of its device, and some for the user. */
const ATTEMPTS = USERS_PER_DEVICE + 10;

/**
 * Records that a user was identified on a device, and binds the user to the device's attribution unless the user has a
 * binding: the first committed binding stays, even if it belongs to another device. The first identification time of
 * the pair stays too. Returns undefined when the device has no attribution, and `too_many_users` when the device has as many users as it
 * can have and this is another one; nothing is then recorded, nor of an erased user. The result depends on the device only: anybody
 * can name any user.
 *
 * One statement does both, so that a process that dies leaves both or neither. If it sees no attribution, it runs again
 * after its commit: it then sees an install that committed meanwhile, and a later install sees the pair. A call that loses
 * a place to another statement runs again.
 */
export async function bindUser(
  sql: Sql,
  identity: Identity,
): Promise<IdentifiedUser | 'too_many_users' | undefined> {
  const id = newId('binding');
  const { identified } = await retryUntilVisible(async () => {
    const row = await insertTogether(sql, { id, ...identity });
    if (row.isRefused) return { identified: 'too_many_users' as const };
    if (row.hasLost) return undefined;
    const { deviceAttributionId: attributionId, deviceAffiliateId: affiliateId } = row;
    if (attributionId === null)
      return row.wasRemembered || row.isErased ? { identified: undefined } : undefined;
    if (row.bindingId === null && !row.isErased) return undefined;
    return {
      identified: { attributionId, affiliateId, newBindingId: row.bindingId === id ? row.bindingId : null },
    };
  }, ATTEMPTS);
  return identified;
}

/**
 * Records identities of different devices, and binds their users. Statements take positions in the order of the devices, and
 * bindings after them in the order of the users, so two of them never wait in a circle. What another one has taken meanwhile is left out.
 *
 * The parts of the statement: `named` are the identities with what is stored of their device and their user; `remembered` are the
 * pairs that are new; `added` are the bindings that are new, only of pairs that are stored.
 */
async function insertBindings(
  sql: Sql,
  identities: readonly NamedIdentity[],
  isAlone: boolean,
): Promise<BoundRow[]> {
  const rows = identities.map(({ addressHash, userHash, ...identity }, index) => ({
    ...identity,
    number: index + 1,
    addressHash: addressHash?.toString('hex') ?? null,
    userHash: userHash.toString('hex'),
  }));
  const found = await sql<BoundRow>`
    with named as materialized (
      select i.number, i.id, i."appId" as app_id, i."deviceId" as device_id, i."customerUserId" as customer_user_id,
             decode(i."addressHash", 'hex') as address_hash, u.known_at is not null as was_remembered,
             coalesce(u.known_at, to_timestamp(i."identifiedAt" / 1000.0)) as identified_at, p.position,
             d.id as attribution_id, d.affiliate_id, b.id as stored_id,
             p.position is null and u.known_at is null and (b.attribution_id = d.id) is not true as is_refused,
             exists (select from erased_identifiers x
                      where x.app_id = i."appId" and x.hash = decode(i."userHash", 'hex') and x.kind = 'user') as is_erased
        from jsonb_to_recordset(${sql.json(rows)}) i (number integer, id text, "appId" text, "deviceId" text,
               "customerUserId" text, "identifiedAt" bigint, "addressHash" text, "userHash" text)
       cross join ${lockLimit(sql, isAlone)}
       cross join lateral (
         select min(x.identified_at) filter (where x.customer_user_id = i."customerUserId") as known_at,
                array_agg(x.position) as taken
           from identities x where x.app_id = i."appId" and x.device_id = i."deviceId" offset 0) u
       cross join lateral (
         select min(n) as position from generate_series(1, ${USERS_PER_DEVICE}::integer) n
          where (n = any(u.taken)) is not true) p
        left join lateral (
          select x.id, x.affiliate_id from attributions x
           where x.app_id = i."appId" and x.device_id = i."deviceId" offset 0) d on true
        left join lateral (
          select x.id, x.attribution_id from bindings x
           where x.app_id = i."appId" and x.customer_user_id = i."customerUserId" offset 0) b on true
    ), remembered as (
      insert into identities (app_id, device_id, customer_user_id, position, identified_at, address_hash)
      select app_id, device_id, customer_user_id, position, identified_at, address_hash
        from named where not was_remembered and position is not null and not is_erased order by app_id, device_id
      on conflict do nothing
      returning app_id, device_id
    ), stored as materialized (
      select n.*, not n.was_remembered and n.position is not null and not n.is_erased and r.device_id is null as has_lost
        from named n left join remembered r on r.app_id = n.app_id and r.device_id = n.device_id
    ), added as (
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
      select id, app_id, customer_user_id, attribution_id, identified_at
        from stored
       where attribution_id is not null and stored_id is null and not is_refused and not is_erased and not has_lost
       order by app_id, customer_user_id
      on conflict (app_id, customer_user_id) do nothing
      returning id
    )
    select n.number, n.was_remembered, n.is_refused, n.is_erased, n.has_lost, n.attribution_id as device_attribution_id,
           n.affiliate_id as device_affiliate_id, coalesce(n.stored_id, a.id) as binding_id
      from stored n left join added a on a.id = n.id
`;
  const bound = new Map(found.map((row) => [row.number, row]));
  return rows.map(({ number, appId }) => {
    const row = bound.get(number);
    if (row === undefined) throw new InvalidResult(`a user of ${appId} was not answered`);
    return row;
  });
}

const insertTogether = shareStatements(insertBindings, {
  keyOf: ({ appId, deviceId }) => `${appId} ${deviceId}`,
  repeated: 'wait',
});

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
