import type { Environment } from '../domain/events.ts';
import type { AppId } from '../domain/ids.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/**
 * A condition of SQL: whether a link `(source, user_key)` has the id of an invoice as the key. That is the reference of a payment, and not
 * a key of a person.
 */
export const isInvoice = (sql: Statements): Fragment =>
  sql.fragment`(source = 'stripe' and user_key ~ '^in_')`;

/** Behind the users whom the events of an invoice itself name. */
const POSITION = 500;

/**
 * Names the users of Stripe's invoices whom an event of another object of the invoice names, such as its payment intent: their links
 * have the id of the invoice as the key. `refs` are references of the payment, the invoice among them. Call it after the facts of each
 * event that may tie the two together were committed: of two concurrent ones, the one that commits second sees both.
 */
export async function nameUsersOfInvoices(
  sql: Sql,
  appId: AppId,
  environment: Environment,
  refs: readonly string[],
): Promise<void> {
  await sql`
    insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
    select ${appId}::text, l.customer_user_id, p.id, p.environment, ${POSITION}::int
      from unnest(${[...refs]}::text[]) i (id)
     cross join lateral (
       select x.customer_user_id from user_links x
        where x.app_id = ${appId} and x.environment = ${environment} and x.source = 'stripe' and x.user_key = i.id offset 0) l
     cross join lateral (
       select x.id, x.environment from payments x
        where x.app_id = ${appId} and x.environment = ${environment} and x.store = 'stripe' and x.ref = i.id offset 0) p
    on conflict do nothing`;
}
