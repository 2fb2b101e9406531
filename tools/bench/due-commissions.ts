import { instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';

const ROWS_PER_STATEMENT = 10_000;

/** The amount of the due commission number `n`, cents. */
export const dueCents = (n: number) => 1 + (n % 997);

export interface DueCommissions {
  readonly appId: string;
  readonly customerUserId: string;
  readonly status: 'pending' | 'matured';
}

/**
 * Inserts due commissions of the creator whom a user is attributed to, with the deliveries, events, payments and revenue
 * that they follow from, as the service would have written them forty days ago. Their numbers begin after `after`. A service that
 * runs matures pending ones meanwhile.
 */
export async function insertDueCommissions(
  sql: Sql,
  { appId, customerUserId, status }: DueCommissions,
  count: number,
  after = 0,
): Promise<void> {
  const firstAt = instant(Date.now() - 40 * DAY_MS);
  for (let from = after + 1; from <= after + count; from += ROWS_PER_STATEMENT) {
    const to = Math.min(after + count, from + ROWS_PER_STATEMENT - 1);
    const rows = sql.fragment`
      due as materialized (
        select n, '_0' || lpad(n::text, 25, '0') as suffix, 1 + n % 997 as cents, b.app_id, b.id as binding_id,
               b.customer_user_id, t.affiliate_id, t.link_id, t.match_method, s.id as secret_id,
               ${firstAt}::timestamptz - n * interval '1 second' as at
          from generate_series(${from}::int, ${to}::int) n,
               bindings b join attributions t on t.id = b.attribution_id,
               (select id from webhook_secrets where app_id = ${appId} and provider = 'stripe' limit 1) s
         where b.app_id = ${appId} and b.customer_user_id = ${customerUserId}
      )`;
    await sql`
      with ${rows}, added as (
        insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                                event_id, source_event_id, event_count, completed_at)
        select 'del' || suffix, app_id, 'stripe', at, true, 'processed', secret_id, sha256('due'), 'evt' || suffix, 'due-' || n, 1, at
          from due
      )
      insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                          customer_user_id, store, payment_ref, currency, amount_minor, amount_cents)
      select 'evt' || suffix, app_id, 'del' || suffix, 'stripe', 'due-' || n, 'purchase', 'production', at, at,
             customer_user_id, 'stripe', 'due-' || n, 'USD', cents * 5, cents * 5
        from due`;
    await sql`
      with ${rows}, added as (
        insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                              only_anonymous_user, version, evaluated_at, base_cents, binding_id)
        select 'pmt' || suffix, app_id, 'production', 'stripe', 'due-' || n, 'evt' || suffix, 'USD', cents * 5, cents * 5, at,
               false, 1, at, cents * 5, binding_id
          from due
      )
      insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
      select app_id, customer_user_id, 'pmt' || suffix, 'production', 0 from due`;
    await sql`
      with ${rows}, added as (
        insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps,
                                 rate_source, base_cents, amount_cents, source, customer_user_id, match_method, occurred_at, due_at, status, matured_at)
        select 'com' || suffix, app_id, affiliate_id, link_id, 'evt' || suffix, 'pmt' || suffix, binding_id, 'earning', 2000,
               'app', cents * 5, cents, 'stripe', customer_user_id, match_method, at, at + interval '30 days',
               ${status}::text, case ${status}::text when 'matured' then at + interval '30 days' end
          from due
      )
      insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
      select 'pmt' || suffix, 1, app_id, affiliate_id, link_id, cents * 5, at from due`;
  }
}
