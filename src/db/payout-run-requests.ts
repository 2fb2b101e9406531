import type { AffiliateId, AppId, PayoutRequestId, PayoutRunId, PayoutRunItemId } from '../domain/ids.ts';
import type { PayoutRunKeys } from '../domain/payout-run.ts';
import { newId } from './new-id.ts';
import { itemsOfRun } from './payout-runs.ts';
import type { Sql, Statements } from './sql.ts';

/** How long a request of a run can be settled. After that it is never paid. */
const REQUEST_VALID_MS = 3_600_000;

/** The requests of a run. */
export interface RunRequests {
  readonly open: readonly {
    readonly id: PayoutRequestId;
    readonly appId: AppId;
    readonly affiliateId: AffiliateId;
  }[];
  /** The number of items that have a request, of all. */
  readonly begun: number;
  readonly items: number;
  /** Whether no further request is to come. */
  readonly isLast: boolean;
}

/**
 * Opens requests for items of an approved run until `most` are open, in the name of who approved it. Returns the open ones. An item gets
 * one request, in whatever process and however often this runs. Undefined for a run that has ended.
 */
export async function openRunRequests(
  sql: Sql,
  runId: PayoutRunId,
  most: number,
): Promise<RunRequests | undefined> {
  return await sql.transaction(async (tx) => {
    const run = await tx.maybe<{ readonly isStopped: boolean; readonly items: number }>`
      select stopped_at is not null as is_stopped, item_count as items from payout_runs where id = ${runId} and status = 'approved' for update`;
    if (run === undefined) return undefined;
    const open = await findOpen(tx, runId);
    const next = run.isStopped ? [] : await findNext(tx, runId, most - open.length);
    const requests = next.map(({ id }) => ({ itemId: id, requestId: newId('payoutRequest') }));
    if (requests.length > 0) await openRequests(tx, requests);
    // Items get their requests in turn.
    const waiting = await findNext(tx, runId, 1);
    return {
      open: requests.length > 0 ? await findOpen(tx, runId) : open,
      begun: (waiting[0]?.position ?? run.items + 1) - 1,
      items: run.items,
      isLast: run.isStopped || waiting.length === 0,
    };
  });
}

async function findOpen(tx: Statements, runId: PayoutRunId): Promise<RunRequests['open']> {
  return await tx<RunRequests['open'][number]>`
    select q.id, q.app_id, q.affiliate_id
      from (select * from payout_requests where status = 'open' and expires_at > now() offset 0) q
      join payout_run_items i on i.request_id = q.id
     where i.run_id = ${runId} order by i.position`;
}

async function findNext(
  tx: Statements,
  runId: PayoutRunId,
  limit: number,
): Promise<{ readonly id: PayoutRunItemId; readonly position: number }[]> {
  return await tx`
    select id, position from payout_run_items
     where run_id = ${runId} and request_id is null and payout_id is null order by position limit ${Math.max(0, limit)}`;
}

async function openRequests(
  tx: Statements,
  requests: readonly { readonly itemId: PayoutRunItemId; readonly requestId: PayoutRequestId }[],
): Promise<void> {
  const pairs = tx.fragment`jsonb_to_recordset(${tx.json(requests)}) x ("itemId" text, "requestId" text)`;
  await tx`
    insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, expected_total_cents, expires_at, actor)
    select x."requestId", i.app_id, i.affiliate_id, r.account_id, r.approved_by, i.expected_cents,
           now() + ${REQUEST_VALID_MS} * interval '1 millisecond', r.actor
      from ${pairs}
      join payout_run_items i on i.id = x."itemId"
      join payout_runs r on r.id = i.run_id`;
  await tx`update payout_run_items i set request_id = x."requestId" from ${pairs} where i.id = x."itemId"`;
}

/** Whether a run pays nobody further. */
export async function isRunStopped(sql: Sql, runId: PayoutRunId): Promise<boolean> {
  const run =
    await sql.maybe`select from payout_runs where id = ${runId} and (status <> 'approved' or stopped_at is not null)`;
  return run !== undefined;
}

/** Whether no request of a run is open. */
export async function areAllSettled(sql: Sql, runId: PayoutRunId): Promise<boolean> {
  const open = await sql.maybe`
    select from (select * from payout_requests where status = 'open' offset 0) q
      join payout_run_items i on i.request_id = q.id where i.run_id = ${runId} limit 1`;
  return open === undefined;
}

/** Ends a run of which no request is open or to come. Returns whether it has ended. */
export async function endRun(sql: Sql, runId: PayoutRunId): Promise<boolean> {
  await sql.forManyRows()`
    update payout_runs set status = 'settled', ended_at = now(), paid_count = s.paid_count, paid_cents = s.paid_cents
      from (select count(*) filter (where i.is_filed)::int as paid_count,
                   coalesce(sum(i.expected_cents) filter (where i.is_filed), 0) as paid_cents,
                   bool_and(coalesce(i.is_settled, r.stopped_at is not null)) as is_settled
              from payout_runs r, lateral (${itemsOfRun(sql)}) i where r.id = ${runId}) s
     where id = ${runId} and status = 'approved' and s.is_settled`;
  const run = await sql.maybe<{
    readonly status: string;
  }>`select status from payout_runs where id = ${runId}`;
  return run?.status !== 'approved';
}

/** Claims approved runs: new ones at once, and those that were claimed `olderThanMs` ago again. Starting a workflow that runs does nothing. */
export async function claimPayoutRuns(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<PayoutRunKeys[]> {
  return await sql<PayoutRunKeys>`
    with page as materialized (
      select id from payout_runs
       where status = 'approved' and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
       order by relayed_at nulls first
       limit ${limit}
       for update skip locked
    )
    update payout_runs r set relayed_at = now() from page where r.id = page.id returning r.id as run_id, r.app_id`;
}
