import type { AffiliateId, AppId, PayoutId, PayoutRequestId, KeyId, AccountId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './retries.ts';
import { LONG_STATEMENT_MS } from './sql.ts';
import type { Sql } from './sql.ts';

export type PayoutRequestStatus = 'open' | 'paid' | 'empty' | 'total_changed' | 'closed';

export interface PayoutRequest {
  readonly id: PayoutRequestId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly status: PayoutRequestStatus;
  readonly payoutId: PayoutId | null;
  readonly netCents: number | null;
  readonly expectedTotalCents: number | null;
  /** Whether earnings remain due that the payout had no room for. False until the request is settled. */
  readonly moreDue: boolean;
}

const REQUEST_COLUMNS = (sql: Sql) => sql.fragment`
  id, app_id, affiliate_id, status, payout_id, net_cents, expected_total_cents, more_due`;

/**
 * Inserts the payout request of an authorized call. If the account has used the idempotency key for a payout request
 * before, returns that request, whatever it was for: the caller compares. Returns `key_reused` if another call used the
 * key, and undefined if the affiliate does not belong to the app.
 */
export async function openPayoutRequest(
  sql: Sql,
  r: {
    readonly id: PayoutRequestId;
    readonly appId: AppId;
    readonly affiliateId: AffiliateId;
    readonly accountId: AccountId;
    readonly keyId: KeyId;
    readonly idempotencyKey: string | null;
    readonly expectedTotalCents: number | null;
    /** How long the caller waits. After that the request is never paid, even if the caller cannot close it. */
    readonly validForMs: number;
  },
): Promise<PayoutRequest | 'key_reused' | undefined> {
  await sql`
    update payout_requests set status = 'closed', settled_at = now(), idempotency_key = null
     where account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey} and status = 'open' and expires_at <= now()`;
  // A call with the same key may close its request between two of these statements, which frees the key.
  const { request } = await retryUntilVisible(async () => {
    await sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, idempotency_key, expected_total_cents, expires_at,
                                   actor)
      select ${r.id}, f.app_id, f.id, ${r.accountId}, ${r.keyId}, ${r.idempotencyKey}, ${r.expectedTotalCents},
             now() + ${r.validForMs} * interval '1 millisecond', ${sql.actor}::text::jsonb
        from affiliates f join apps a on a.id = f.app_id
       where f.id = ${r.affiliateId} and f.app_id = ${r.appId} and a.account_id = ${r.accountId}
         and not exists (select from idempotency_keys k where k.account_id = ${r.accountId}
                            and k.idempotency_key = ${r.idempotencyKey} and k.expires_at > now())
      on conflict do nothing`;
    const opened = await sql.maybe<PayoutRequest>`
      select ${REQUEST_COLUMNS(sql)} from payout_requests
       where id = ${r.id} or (account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey})`;
    if (opened !== undefined) return { request: opened };
    const { isKnown, isReused } = await sql.one<{ isKnown: boolean; isReused: boolean }>`
      select exists (select from affiliates f join apps a on a.id = f.app_id
                      where f.id = ${r.affiliateId} and f.app_id = ${r.appId} and a.account_id = ${r.accountId}) as is_known,
             exists (select from idempotency_keys
                      where account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey}
                        and expires_at > now()) as is_reused`;
    if (isReused) return { request: 'key_reused' as const };
    return isKnown ? undefined : { request: undefined };
  });
  return request;
}

/** Returns a payout request. Undefined for an unknown id. */
export async function findPayoutRequest(
  sql: Sql,
  requestId: PayoutRequestId,
): Promise<PayoutRequest | undefined> {
  return await sql.maybe<PayoutRequest>`select ${REQUEST_COLUMNS(sql)} from payout_requests where id = ${requestId}`;
}

/**
 * Returns the other requests for the affiliate of a request that still wait, latest first: the earliest are about to be
 * given up. At most `limit`.
 */
export async function findWaitingRequests(
  sql: Sql,
  requestId: PayoutRequestId,
  limit: number,
): Promise<readonly PayoutRequestId[]> {
  const rows = await sql<{ id: PayoutRequestId }>`
    select w.id
      from payout_requests r
      join payout_requests w on w.app_id = r.app_id and w.affiliate_id = r.affiliate_id
     where r.id = ${requestId} and w.id <> r.id and w.status = 'open' and w.expires_at > now()
     order by w.id desc limit ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Closes a request whose caller stops waiting, and frees its idempotency key for another attempt. Waits for a settlement
 * that is running. Returns true if the request is closed: nothing will be paid for it. Returns false if it was settled
 * before: read it again.
 */
export async function closePayoutRequest(sql: Sql, requestId: PayoutRequestId): Promise<boolean> {
  await sql.within(LONG_STATEMENT_MS)`
    update payout_requests set status = 'closed', settled_at = now(), idempotency_key = null
     where id = ${requestId} and status = 'open'`;
  const row = await sql.one<{
    status: PayoutRequestStatus;
  }>`select status from payout_requests where id = ${requestId}`;
  return row.status === 'closed';
}

/**
 * Closes at most `limit` open requests that have expired, because their process died or could not reach the database.
 * Nothing is paid for them. Returns how many.
 */
export async function closeAbandonedRequests(sql: Sql, limit: number): Promise<number> {
  const rows = await sql`
    with page as materialized (
      select id from payout_requests where status = 'open' and expires_at <= now()
       order by expires_at limit ${limit} for update skip locked
    )
    update payout_requests r set status = 'closed', settled_at = now(), idempotency_key = null
      from page
     where r.id = page.id and r.status = 'open'
    returning r.id`;
  return rows.length;
}

/** The largest amount that a column of type `cents` takes, and that a number represents exactly. */
const MAX_CENTS = Number.MAX_SAFE_INTEGER;

/** A payout contains at most this many earnings. The next export pays the rest. */
export const PAYOUT_EARNINGS_LIMIT = 50_000;

/**
 * Settles an open payout request in one statement. A request that is no longer open moves nothing, so a second run pays
 * nothing. A net of zero or less pays nothing and is carried forward. The parts of the statement:
 *
 * - `req` locks the open request. `deductions` locks all due rows that are negative, and `earnings` the oldest due rows
 *   that are positive and one more. Those that fit one payout, by number and sum, are `is_bounded`. The locks let a
 *   concurrent refund append its reversal.
 * - `short` has a row if those earnings do not outweigh the deductions although more are due. `further` then adds
 *   earnings until the net is positive, so that deductions can never keep a creator from being paid.
 * - `due` are the rows that this payout would contain, and `net` is their sum. `owed` is the sum of everything due,
 *   which an expected total is compared with. It locks the rows that it sums: after a concurrent settlement this
 *   statement still sees its rows as due unless it locks them.
 * - `verdict` decides: `total_changed` if the caller expected another total, `paid` if the net is positive, else
 *   `empty`.
 * - `payout` and `items` insert the payout. `moved` marks its commissions paid, and matures due ones in any case.
 * - The final update stores the result in the request.
 */
export async function settlePayoutRequest(
  sql: Sql,
  requestId: PayoutRequestId,
  limit = PAYOUT_EARNINGS_LIMIT,
): Promise<void> {
  const dueOf = (sign: ReturnType<Sql['fragment']>) => sql.fragment`
    c.app_id = req.app_id and c.affiliate_id = req.affiliate_id and c.status <> 'paid' and c.due_at <= now()
      and c.amount_cents ${sign} 0`;
  const [negative, positive] = [dueOf(sql.fragment`<`), dueOf(sql.fragment`>`)];
  await sql.within(LONG_STATEMENT_MS)`
    with req as materialized (
      select r.id, r.app_id, r.affiliate_id, r.expected_total_cents, f.name as affiliate_name
        from payout_requests r join affiliates f on f.id = r.affiliate_id
       where r.id = ${requestId} and r.status = 'open' and r.expires_at > now()
         for update of r
    ), deductions as materialized (
      select d.*
        from req cross join lateral (
          select c.id, c.amount_cents, c.occurred_at, c.status from commissions c where ${negative}
           order by c.due_at, c.id for no key update) d
    ), earnings as materialized (
      select e.*, row_number() over oldest <= ${limit} and sum(e.amount_cents) over oldest <= ${MAX_CENTS}::numeric as is_bounded
        from req cross join lateral (
          select c.id, c.amount_cents, c.occurred_at, c.status, c.due_at from commissions c where ${positive}
           order by c.due_at, c.id limit ${limit + 1} for no key update) e
      window oldest as (order by e.due_at, e.id)
    ), short as (
      select s.cents
        from (select (select coalesce(sum(amount_cents), 0) from earnings where is_bounded)
                     + (select coalesce(sum(amount_cents), 0) from deductions) as cents) s
       where s.cents <= 0 and exists (select from earnings where not is_bounded)
    ), further as materialized (
      select f.*, short.cents + sum(f.amount_cents) over (order by f.due_at, f.id) - f.amount_cents as net_before
        from req cross join short cross join lateral (
          select c.id, c.amount_cents, c.occurred_at, c.status, c.due_at from commissions c where ${positive}
           order by c.due_at, c.id offset (select count(*) from earnings where is_bounded) for no key update) f
    ), due as materialized (
      select id, amount_cents, occurred_at, status, true as is_bounded from deductions
      union all
      select id, amount_cents, occurred_at, status, true from earnings where is_bounded
      union all
      select id, amount_cents, occurred_at, status, false from further where net_before <= 0
    ), net as (
      select coalesce(sum(amount_cents), 0) as cents, count(*)::int as items,
             case when exists (select from short) then exists (select from further where net_before > 0)
                  else exists (select from earnings where not is_bounded) end as more
        from due
    ), owed as (
      select case when req.expected_total_cents is not null and net.more
                  then (select coalesce(sum(amount_cents), 0) from deductions)
                       + (select sum(o.amount_cents)
                            from (select c.amount_cents from commissions c where ${positive}
                                   order by c.due_at, c.id for no key update) o)
                  else net.cents end as cents
        from req, net
    ), verdict as (
      select req.*, net.cents, net.items, net.more, owed.cents as owed_cents,
             case when req.expected_total_cents is not null and req.expected_total_cents <> greatest(owed.cents, 0) then 'total_changed'
                  when net.cents > 0 then 'paid' else 'empty' end as status
        from req, net, owed
    ), payout as (
      insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents)
      select ${newId('payout')}, app_id, affiliate_id, affiliate_name, items, cents from verdict where status = 'paid'
      returning id, app_id, affiliate_id
    ), items as (
      insert into payout_items (payout_id, commission_id, app_id, affiliate_id, amount_cents, position)
      select payout.id, due.id, payout.app_id, payout.affiliate_id, due.amount_cents,
             row_number() over (order by due.occurred_at, due.id)
        from payout, due
    ), moved as (
      update commissions c
         set status = case when payout.id is null then 'matured' else 'paid' end,
             matured_at = coalesce(c.matured_at, now()),
             paid_at = case when payout.id is not null then now() end,
             payout_id = payout.id
        from verdict left join payout on true, due
       where c.id = due.id and (payout.id is not null or (due.status = 'pending' and due.is_bounded))
    )
    update payout_requests r
       set status = verdict.status, payout_id = payout.id, settled_at = now(), more_due = verdict.more,
           net_cents = least(greatest(case verdict.status when 'total_changed' then verdict.owed_cents else verdict.cents end,
                                      -${MAX_CENTS}::numeric), ${MAX_CENTS}::numeric)
      from verdict left join payout on true
     where r.id = verdict.id and r.status = 'open'`;
}
