import type { CommissionKind } from '../domain/payment-snapshot.ts';
import type { AppId, CommissionId, AffiliateId, DeliveryId, EventId, ReprocessRunId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import type { DeliveryOutcomeStatus } from '../domain/reprocess.ts';
import { acting } from './audit.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';
import type { ReprocessedDelivery } from './reprocess-deliveries.ts';

/** Selects the deliveries of an app to process again. Instants are epoch ms; `to` is excluded. */
export interface ReprocessRequest {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  readonly deliveryId: DeliveryId | null;
  readonly from: number | null;
  readonly to: number | null;
}

const orNull = (at: number | null) => (at === null ? null : instant(at));

/**
 * Inserts a reprocess run for the accepted deliveries that have an outcome. The service on this database starts it
 * automatically. Returns undefined for an unknown app, and for a delivery that the app does not have, that has no outcome
 * yet, or whose body was removed.
 */
export async function requestReprocessing(
  sql: Sql,
  request: ReprocessRequest,
): Promise<ReprocessRunId | undefined> {
  const { appId, deliveryId } = request;
  const row = await sql.maybe<{ id: ReprocessRunId }>`
    with range as (
      select a.id as app_id,
             coalesce(${orNull(request.from)}::timestamptz, '-infinity') as from_at,
             least(now(), ${orNull(request.to)}::timestamptz) as to_at
        from apps a where a.id = ${appId}
    ), added as (
      insert into reprocess_runs (id, app_id, dry_run, delivery_id, from_at, to_at, deliveries)
      select ${request.id}, r.app_id, ${request.dryRun}, ${deliveryId}, r.from_at, greatest(r.from_at, r.to_at),
             (select count(*) from deliveries d
               where d.app_id = r.app_id and d.signature_valid and d.completed_at is not null
                 and case when ${deliveryId !== null}::boolean then d.id = ${deliveryId}
                          else d.received_at >= r.from_at and d.received_at < r.to_at end)
        from range r
       where ${acting(sql)}
         and (${deliveryId === null}::boolean
              or exists (select from deliveries d
                          where d.app_id = r.app_id and d.id = ${deliveryId} and d.signature_valid and d.completed_at is not null
                            and exists (select from delivery_bodies b where b.delivery_id = d.id)))
      on conflict (id) do nothing
      returning id
    )
    select id from added union select id from reprocess_runs where id = ${request.id}`;
  return row?.id;
}

export interface ReprocessRun {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  /** The delivery to process. Null for a run over a time range. */
  readonly deliveryId: DeliveryId | null;
  /** Filters of a run over a time range. Null selects all deliveries. */
  readonly provider: ProviderName | null;
  readonly processingStatus: DeliveryOutcomeStatus | null;
  /** The dry run whose plans the run applies, and nothing else. Null for a run that makes its own. */
  readonly appliesRunId: ReprocessRunId | null;
  /** Number of deliveries to examine. */
  readonly deliveries: number;
  /** Number of deliveries examined so far. */
  readonly seen: number;
  /** Number of examined deliveries that differ in anything. */
  readonly changed: number;
  /** Number of deliveries with something appended. */
  readonly applied: number;
  /** Why the last attempt at a page failed. The page is retried. */
  readonly lastError: string | null;
  readonly isStarted: boolean;
  readonly isFinished: boolean;
  readonly isCancelled: boolean;
}

/** Returns a reprocess run with its progress. Undefined for an unknown id. */
export async function findReprocessRun(sql: Sql, id: ReprocessRunId): Promise<ReprocessRun | undefined> {
  return await sql.maybe<ReprocessRun>`
    select id, app_id, dry_run, delivery_id, provider, processing_status, applies_run_id,
           greatest(deliveries, seen) as deliveries, seen, changed, applied, last_error,
           relayed_at is not null as is_started, finished_at is not null as is_finished, cancelled as is_cancelled
      from reprocess_runs where id = ${id}`;
}

/**
 * Claims unfinished reprocess runs: new and newly cancelled ones at once, and those that were claimed `olderThanMs` ago
 * again (starting a workflow that still runs does nothing).
 */
export async function claimReprocessRuns(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<Pick<ReprocessRun, 'id' | 'appId' | 'isCancelled'>[]> {
  return await sql<Pick<ReprocessRun, 'id' | 'appId' | 'isCancelled'>>`
    with page as materialized (
      select id from reprocess_runs
       where finished_at is null
         and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
       order by coalesce(relayed_at, created_at)
       limit ${limit}
       for update skip locked
    )
    update reprocess_runs r set relayed_at = now()
      from page
     where r.id = page.id and r.finished_at is null
    returning r.id, r.app_id, r.cancelled as is_cancelled`;
}

/** Moves a run past the last delivery of a page. A second call moves nothing. */
export async function advanceReprocessRun(
  sql: Sql,
  reprocess: ReprocessRun,
  page: readonly ReprocessedDelivery[],
): Promise<void> {
  const last = page.at(-1);
  if (last === undefined) return;
  await sql`
    update reprocess_runs r
       set seen = r.seen + ${page.length}, last_received_at = d.received_at, last_delivery_id = d.id, changed = r.changed + c.changed,
           applied = r.applied + c.applied, last_error = null,
           commission_cents = case when r.dry_run then coalesce(r.commission_cents, 0) + c.commission_cents end,
           revenue_cents = case when r.dry_run then coalesce(r.revenue_cents, 0) + c.revenue_cents end
      from deliveries d,
           (select count(*)::int as changed, count(x.applied_at)::int as applied,
                   coalesce(sum(m.commission_cents), 0) as commission_cents, coalesce(sum(m.revenue_cents), 0) as revenue_cents
              from reprocess_changes x
             cross join lateral (
               select sum((e->>'amountCents')::bigint) filter (where e->>'what' = 'commission') as commission_cents,
                      sum((e->>'amountCents')::bigint) filter (where e->>'what' = 'revenue') as revenue_cents
                 from jsonb_array_elements(x.changes) e) m
             where x.reprocess_run_id = ${reprocess.id} and x.delivery_id = any(${page.map((row) => row.deliveryId)}::text[])) c
     where r.id = ${reprocess.id} and r.seen = ${reprocess.seen} and d.id = ${last.deliveryId}`;
}

/** Records why a page failed. The page is retried, and the command line shows the error. */
export async function recordReprocessError(sql: Sql, id: ReprocessRunId, error: string): Promise<void> {
  await sql`update reprocess_runs set last_error = ${error} where id = ${id} and finished_at is null`;
}

/** Marks a run as finished. Unless it was a dry run, stores what it appended, from the ledger. */
export async function finishReprocessRun(sql: Sql, id: ReprocessRunId): Promise<void> {
  await sql.forManyRows()`
    update reprocess_runs r
       set finished_at = now(), last_error = null,
           commission_cents = case when r.dry_run then coalesce(r.commission_cents, 0) else (
             select coalesce(sum(c.amount_cents), 0) from commissions c where c.reprocess_run_id = ${id}) end,
           revenue_cents = case when r.dry_run then coalesce(r.revenue_cents, 0) else (
             select coalesce(sum(e.amount_cents), 0) from revenue_entries e where e.reprocess_run_id = ${id}) end
     where r.id = ${id} and r.finished_at is null`;
}

/**
 * Cancels a run. A run that has started first applies the plans of its current page; the next round of the relay cancels its
 * workflow. Returns false if the run was finished or is unknown.
 */
export async function cancelReprocessRun(sql: Sql, id: ReprocessRunId): Promise<boolean> {
  const { cancelled } = await sql.one<{ cancelled: boolean }>`
    with ended as (
      update reprocess_runs
         set cancelled = true, finished_at = case when relayed_at is null then now() end,
             relayed_at = case when cancelled or relayed_at is null then relayed_at else '-infinity' end
       where id = ${id} and finished_at is null and ${acting(sql)} returning id
    )
    select exists (select from ended) or exists (select from reprocess_runs where id = ${id} and cancelled) as cancelled`;
  return cancelled;
}

/** A commission that a run appended. */
export interface ReprocessedCommission {
  readonly commissionId: CommissionId;
  readonly eventId: EventId;
  readonly affiliateId: AffiliateId;
  readonly kind: CommissionKind;
  readonly amountCents: number;
}

/** Returns a page of the commissions that a run appended, by id, from the ledger instead of the plans. */
export async function listReprocessedCommissions(
  sql: Sql,
  id: ReprocessRunId,
  after: CommissionId | null,
  limit: number,
): Promise<ReprocessedCommission[]> {
  return await sql<ReprocessedCommission>`
    select id as commission_id, event_id, affiliate_id, kind, amount_cents
      from commissions where reprocess_run_id = ${id} and id > ${after ?? ''} order by id limit ${limit}`;
}

/** Returns the sums that a run appended to the ledger, in cents, from the ledger itself. */
export async function sumReprocessed(
  sql: Sql,
  id: ReprocessRunId,
): Promise<{ commissionCents: number; revenueCents: number }> {
  return await sql.one<{ commissionCents: number; revenueCents: number }>`
    select (select coalesce(sum(amount_cents), 0)::float8 from commissions where reprocess_run_id = ${id}) as commission_cents,
           (select coalesce(sum(amount_cents), 0)::float8 from revenue_entries where reprocess_run_id = ${id}) as revenue_cents`;
}
