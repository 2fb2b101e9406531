import { CAUSES_WITHOUT_USER } from '../domain/attributable-key.ts';
import { CUSTOMER_KEY } from '../domain/payment-snapshot.ts';
import type { Fragment, Statements } from './sql.ts';

/**
 * The provider of a key that a person attributes; null if `userKey` is a user's id, or that of a customer, who may be a company with many
 * users.
 */
export function sourceOfKey(sql: Statements, appId: Fragment, userKey: Fragment): Fragment {
  return sql.fragment`
    (select own.source from payment_user_keys own
      where own.app_id = ${appId} and own.user_key = ${userKey} and own.user_key !~ ${CUSTOMER_KEY} and own.environment = 'production'
        and not exists (select from identities i where i.app_id = ${appId} and i.customer_user_id = ${userKey})
        and not exists (select from payment_users w where w.app_id = ${appId} and w.customer_user_id = ${userKey})
      limit 1)`;
}

/**
 * The `AttributableKey` of a payment `p` without a user, whose evaluation had `cause`: what a code would bind of it. Null if the key belongs to
 * somebody, or did before, and if the payment has none.
 */
export function attributableKeyOf(sql: Statements, cause: Fragment): Fragment {
  return sql.fragment`
    case when ${cause} = any(${[...CAUSES_WITHOUT_USER]}::text[]) then (
      select jsonb_build_object(
               'customerUserId', bound.key->>'userKey', 'keySource', bound.key->>'source',
               -- Stripe and Paddle name subscriptions alike; those of a store begin with its name. Any other key is an id that the SDK of a provider made.
               'standsFor', case when bound.key->>'userKey' ~ '^(sub_|[a-z_]+:)' then 'subscription' else 'anonymous_customer' end)
        from (select array(select x.id::text from same_payment(p.app_id, p.environment, p.store, array[p.ref]) x) as ids offset 0) same
       cross join lateral (select keys_to_bind(p, same.ids, ${CUSTOMER_KEY})->0 as key offset 0) bound
       -- A payment without a key has its reference, which nobody can attribute.
       where ${sourceOfKey(sql, sql.fragment`p.app_id`, sql.fragment`(bound.key->>'userKey')`)} is not null
         -- Who has one of the keys has the payments that follow.
         and not exists (select from unnest(same.ids) i
                          cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y
                           join bindings b on b.app_id = p.app_id and b.customer_user_id = y.user_key)) end`;
}
