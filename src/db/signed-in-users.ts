import type { AppId, BindingId, PaymentId } from '../domain/ids.ts';
import { isSomebody } from '../domain/user-ids.ts';
import { newId } from './new-id.ts';
import type { Sql } from './sql.ts';

/** A user who has a key of a provider: an event names both. */
export interface SignedInUser {
  readonly userKey: string;
  readonly customerUserId: string;
}

/** Number of users per call. No real key has more. */
const MOST_USERS = 200;

/**
 * Binds users to the creators of their keys that codes bound: who bought with a code and signs in later belongs to its creator. A user
 * with a binding keeps it, and one whose keys belong to several creators gets none. Payments of the user count with those of the key that was bound first.
 *
 * Call it after the facts that name both were committed, and after the binding of a key was committed (`findSignedInUsers`): the later
 * call sees both. Returns the bindings of such users that are not healed yet.
 */
export async function bindSignedInUsers(
  sql: Sql,
  appId: AppId,
  users: readonly SignedInUser[],
): Promise<BindingId[]> {
  if (users.length === 0) return [];
  const pairs = users.slice(0, MOST_USERS).map((user) => ({ ...user, id: newId('binding') }));
  const rows = await sql<{ id: BindingId }>`
    with named as materialized (
      select w."customerUserId" as customer_user_id, min(w.id) as id,
             (array_agg(b.counts_with order by b.created_at, b.id))[1] as counts_with,
             (array_agg(b.attribution_id order by b.created_at, b.id))[1] as attribution_id
        from jsonb_to_recordset(${sql.json(pairs)}) w (id text, "userKey" text, "customerUserId" text)
       cross join lateral (
         select y.id, y.created_at, coalesce(y.counts_with, y.id::text) as counts_with, attribution_at(y, now()) as attribution_id from bindings y
          where y.app_id = ${appId} and y.customer_user_id = w."userKey" and y.key_source is not null offset 0) b
        left join lateral (select affiliate_id from attributions y where y.id = b.attribution_id offset 0) t on true
       where w."customerUserId" <> w."userKey"
       group by 1 having count(distinct t.affiliate_id) = 1 and count(*) = count(t.affiliate_id)
    ), added as (
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, counts_with)
      select id, ${appId}::text, customer_user_id, attribution_id, now(), counts_with from named order by customer_user_id
      on conflict (app_id, customer_user_id) do nothing
      returning id
    )
    select id from added
    union all
    select b.id from named n
     cross join lateral (
       select y.id from bindings y
        where y.app_id = ${appId} and y.customer_user_id = n.customer_user_id and y.healed_at is null offset 0) b`;
  return rows.map(({ id }) => id);
}

/** Returns users whom an event of any provider names with the key that a binding has. Empty for the binding of a user. */
export async function findSignedInUsers(sql: Sql, bindingId: BindingId): Promise<readonly SignedInUser[]> {
  const users = await sql<SignedInUser>`
    select distinct b.customer_user_id as user_key, u.customer_user_id
      from bindings b
     cross join lateral (
       select l.customer_user_id from user_links l
        where l.app_id = b.app_id and l.environment = 'production' and l.user_key = b.customer_user_id
       union all
       (select w.customer_user_id from payment_user_keys k
          join payment_users w on w.payment_id = k.payment_id
         where k.app_id = b.app_id and k.user_key = b.customer_user_id and k.environment = 'production'
         limit ${MOST_USERS})) u
     where b.id = ${bindingId} and b.key_source is not null
     limit ${MOST_USERS}`;
  return users.filter(isSomebody);
}

/** Returns the users of payments that have one of the keys, with that key, whichever events named them. */
export async function findUsersWithKeys(
  sql: Sql,
  paymentIds: readonly PaymentId[],
  userKeys: readonly string[],
): Promise<readonly SignedInUser[]> {
  if (userKeys.length === 0) return [];
  const users = await sql<SignedInUser>`
    select distinct k.user_key, w.customer_user_id
      from payment_user_keys k join payment_users w on w.payment_id = k.payment_id
     where k.payment_id = any(${[...paymentIds]}::text[]) and k.user_key = any(${[...new Set(userKeys)]}::text[])
       and k.environment = 'production'
     limit ${MOST_USERS}`;
  return users.filter(isSomebody);
}
