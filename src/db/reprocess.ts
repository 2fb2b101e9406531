import type { CommissionKind } from '../domain/evaluate-payment.ts';
import type { AppId, CommissionId, AffiliateId, DeliveryId, EventId, ReprocessRunId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import type { DeliveryOutcomeStatus, EventReading, ReprocessChange } from '../domain/reprocess.ts';
import { acting } from './audit.ts';
import { removeEncryptedBody } from './deliveries.ts';
import { instant, LONG_STATEMENT_MS } from './sql.ts';
import type { Sql } from './sql.ts';

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
): Promise<Pick<ReprocessRun, 'id' | 'isCancelled'>[]> {
  return await sql<Pick<ReprocessRun, 'id' | 'isCancelled'>>`
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
    returning r.id, r.cancelled as is_cancelled`;
}

/** A delivery of a reprocess run. */
export interface ReprocessedDelivery {
  readonly deliveryId: DeliveryId;
  readonly receivedAt: number;
}

/** A delivery that a run examines next. */
export interface NextDelivery extends ReprocessedDelivery {
  /** What the dry run showed that the run applies. Null for a run that makes its own plans. */
  readonly shown: readonly ReprocessChange[] | null;
}

/** Returns the next deliveries of a run, in the order of receipt. Empty at the end. */
export async function findNextDeliveries(
  sql: Sql,
  {
    id,
    deliveryId,
    provider,
    processingStatus,
    appliesRunId,
  }: Pick<ReprocessRun, 'id' | 'deliveryId' | 'provider' | 'processingStatus' | 'appliesRunId'>,
  limit: number,
): Promise<NextDelivery[]> {
  if (appliesRunId !== null) {
    return await sql<NextDelivery>`
      select c.delivery_id, c.received_at, c.changes as shown
        from reprocess_runs r
       cross join lateral (
         select x.delivery_id, x.received_at, x.changes from reprocess_changes x
          where x.reprocess_run_id = ${appliesRunId} and x.appends
            and (x.received_at, x.delivery_id::text) > (coalesce(r.last_received_at, '-infinity'), coalesce(r.last_delivery_id::text, ''))
          order by x.received_at, x.delivery_id limit ${limit}) c
       where r.id = ${id} and r.finished_at is null
       order by c.received_at, c.delivery_id`;
  }
  if (deliveryId !== null) {
    return await sql<NextDelivery>`
      select d.id as delivery_id, d.received_at, null as shown
        from reprocess_runs r join deliveries d on d.id = r.delivery_id
       where r.id = ${id} and r.finished_at is null and r.last_delivery_id is null`;
  }
  return await sql<NextDelivery>`
    select d.id as delivery_id, d.received_at, null as shown
      from reprocess_runs r
     cross join lateral (
       select x.id, x.received_at from deliveries x
        where x.app_id = r.app_id and x.signature_valid and x.completed_at is not null and x.received_at < r.to_at
          ${ofStatus(sql, processingStatus)} ${provider === null ? sql.fragment`` : sql.fragment`and x.provider = ${provider}`}
          and (x.received_at, x.id::text) > (coalesce(r.last_received_at, r.from_at), coalesce(r.last_delivery_id::text, ''))
        order by x.received_at, x.id limit ${limit}) d
     where r.id = ${id} and r.finished_at is null
     order by d.received_at, d.id`;
}

/** Returns the condition of a status of deliveries `x`. An index has every status but `processed`. */
export function ofStatus(sql: Sql, status: DeliveryOutcomeStatus | null) {
  if (status === null) return sql.fragment``;
  return status === 'processed'
    ? sql.fragment`and x.processing_status = 'processed'`
    : sql.fragment`and x.processing_status = ${status} and x.processing_status <> 'processed'`;
}

/**
 * The names that a delivery provides and requires, as opaque text. It depends on earlier deliveries that provide a name
 * that it requires.
 */
export interface DeliveryNames {
  readonly provides: readonly string[];
  readonly requires: readonly string[];
}

/** What the current code would change about one delivery. */
export interface DeliveryPlan extends ReprocessedDelivery {
  readonly changes: readonly ReprocessChange[];
  readonly names: DeliveryNames;
  /** Why the plan is not applied: it is not the one that the dry run showed. */
  readonly refusal: string | null;
}

/** Stores the plans of deliveries. An existing plan stays. */
export async function recordPlans(
  sql: Sql,
  reprocess: ReprocessRun,
  plans: readonly DeliveryPlan[],
): Promise<void> {
  if (plans.length === 0) return;
  await sql`
    with planned as (
      select * from jsonb_to_recordset(${sql.json(plans)}) p ("deliveryId" text, "receivedAt" bigint, changes jsonb, names jsonb, refusal text)
    ), added as (
      insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends, refusal)
      select ${reprocess.appId}, ${reprocess.id}, p."deliveryId", to_timestamp(p."receivedAt" / 1000.0), p.changes,
             jsonb_path_exists(p.changes, '$[*] ? (@.action == "append")'), p.refusal
        from planned p
      on conflict (reprocess_run_id, delivery_id) do nothing
      returning delivery_id, appends
    )
    insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
    select ${reprocess.id}, a.delivery_id, n.name, p.names->'provides' ? n.name
      from added a
      join planned p on p."deliveryId" = a.delivery_id
     cross join lateral jsonb_array_elements_text(p.names->'requires') n (name)
     where a.appends`;
}

/** A delivery with a stored plan. */
export interface PlannedDelivery extends ReprocessedDelivery {
  /** Whether the plan still has to be applied. */
  readonly isOpen: boolean;
}

/** More than any page. The limit makes the planner use the index. */
const PLANNED_LIMIT = 100;

/** Returns the stored plans of a run's current page, in order. */
export async function findPlannedDeliveries(sql: Sql, id: ReprocessRunId): Promise<PlannedDelivery[]> {
  return await sql<PlannedDelivery>`
    select c.delivery_id, c.received_at,
           c.appends and c.applied_at is null and c.refusal is null as is_open
      from reprocess_runs r
     cross join lateral (
       select x.* from reprocess_changes x
        where x.reprocess_run_id = r.id
          and (x.received_at, x.delivery_id::text) > (coalesce(r.last_received_at, '-infinity'), coalesce(r.last_delivery_id::text, ''))
        order by x.received_at, x.delivery_id limit ${PLANNED_LIMIT}) c
     where r.id = ${id}
     order by c.received_at, c.delivery_id`;
}

/** A delivery has only a few names. The limit keeps the planner from reading all names of a run. */
const NAMES_LIMIT = 100;

/**
 * Returns the earlier deliveries with an appending plan that a delivery requiring `names` depends on: they provide one
 * of the names, or a name that such a delivery requires. In order of receipt, the latest `limit` of them. The parts of
 * the statement: `found` follows names to their providers; the rest keeps the earlier ones of these deliveries.
 */
export async function findDependencies(
  sql: Sql,
  id: ReprocessRunId,
  { deliveryId, receivedAt }: ReprocessedDelivery,
  names: readonly string[],
  limit: number,
): Promise<DeliveryId[]> {
  if (names.length === 0) return [];
  const providers = (name: ReturnType<Sql['fragment']>) => sql.fragment`
    select t.delivery_id from reprocess_names t
     where t.reprocess_run_id = ${id} and t.name = ${name} and t.provides order by t.delivery_id desc limit ${limit}`;
  const rows = await sql<{ deliveryId: DeliveryId }>`
    with recursive found (delivery_id) as (
      select t.delivery_id from unnest(${[...names]}::text[]) n (name) cross join lateral (${providers(sql.fragment`n.name`)}) t
      union
      select other.delivery_id
        from found f
       cross join lateral (
         select n.name from reprocess_names n
          where n.reprocess_run_id = ${id} and n.delivery_id = f.delivery_id limit ${NAMES_LIMIT}) own
       cross join lateral (${providers(sql.fragment`own.name`)}) other
    )
    select delivery_id from (
      select c.delivery_id, c.received_at
        from found f
       cross join lateral (
         select x.delivery_id, x.received_at from reprocess_changes x
          where x.reprocess_run_id = ${id} and x.delivery_id = f.delivery_id limit 1) c
       where (c.received_at, c.delivery_id::text) < (${instant(receivedAt)}::timestamptz, ${deliveryId}::text)
       order by c.received_at desc, c.delivery_id desc limit ${limit}) c
     order by received_at, delivery_id`;
  return rows.map((row) => row.deliveryId);
}

/** Records that a plan was applied, or why it failed. */
export async function markApplied(
  sql: Sql,
  id: ReprocessRunId,
  deliveryId: DeliveryId,
  refusal: string | null,
): Promise<void> {
  await sql`
    update reprocess_changes set applied_at = case when ${refusal === null}::boolean then now() end, refusal = ${refusal}
     where reprocess_run_id = ${id} and delivery_id = ${deliveryId} and applied_at is null`;
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
  await sql.within(LONG_STATEMENT_MS)`
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

/** The plan for one delivery, with its result. */
export interface ReprocessFinding extends ReprocessedDelivery {
  /** The provider that sent it. */
  readonly source: string;
  readonly eventId: EventId;
  readonly changes: readonly ReprocessChange[];
  readonly appliedAt: number | null;
  readonly refusal: string | null;
}

/** Returns a page of a run's plans, in the order of receipt. */
export async function listReprocessChanges(
  sql: Sql,
  id: ReprocessRunId,
  after: ReprocessedDelivery | null,
  limit: number,
): Promise<ReprocessFinding[]> {
  return await sql<ReprocessFinding>`
    select c.delivery_id, c.received_at, d.provider as source, d.event_id, c.changes,
           c.applied_at, c.refusal
      from reprocess_changes c join deliveries d on d.id = c.delivery_id
     where c.reprocess_run_id = ${id}
       and (c.received_at, c.delivery_id::text)
           > (coalesce((select x.received_at from reprocess_changes x
                         where x.reprocess_run_id = ${id} and x.delivery_id = ${after?.deliveryId ?? null}), '-infinity'),
              ${after?.deliveryId ?? ''}::text)
     order by c.received_at, c.delivery_id limit ${limit}`;
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

/** Returns the stored reading of the event of a delivery. Undefined if it has none, or if it is a duplicate. */
export async function findReading(sql: Sql, deliveryId: DeliveryId): Promise<EventReading | undefined> {
  return await sql.maybe<EventReading>`
    select e.source_event_id, e.kind, e.environment, e.occurred_at,
           e.product_id, e.store, e.payment_ref, e.currency, e.amount_minor, e.amount_cents as usd_cents
      from events e
     where e.delivery_id = ${deliveryId}`;
}

/**
 * Raises the outcome of a reprocessed delivery to `outcome` unless it is null, and stores the commission of its event
 * if the delivery has none. Clears the cause of a further event of a payment, since only the payment's first event has
 * one. Removes the encrypted body of an erased person that a failed outcome had left. Writes nothing if nothing is new.
 */
export async function raiseOutcome(
  sql: Sql,
  deliveryId: DeliveryId,
  outcome: { status: string; reason: string | null } | null,
  sourceEventId: string | null,
): Promise<void> {
  await sql`
    with further_event as (
      update events e set likely_cause = null
       where e.delivery_id = ${deliveryId} and e.likely_cause is not null and e.amount_minor is not null
         and exists (select from payments p
                      where p.app_id = e.app_id and p.environment = e.environment and p.store = e.store
                        and p.ref = e.payment_ref and p.event_id <> e.id)
    ), done as (select id from deliveries where id = ${deliveryId} and ${outcome !== null && outcome.status !== 'failed'}::boolean
    ), forgotten as (${removeEncryptedBody(sql)})
    update deliveries d
       set processing_status = coalesce(${outcome?.status ?? null}, d.processing_status),
           last_error = case when ${outcome === null}::boolean then d.last_error else ${outcome?.reason ?? null} end,
           source_event_id = coalesce(d.source_event_id, ${sourceEventId}),
           event_count = (select count(*) from events e where e.delivery_id = d.id),
           commission_id = coalesce(d.commission_id, own.id)
      from (select (select c.id from commissions c join deliveries x on x.event_id = c.event_id
                     where x.id = ${deliveryId} order by c.created_at desc, c.id desc limit 1) as id) own
     where d.id = ${deliveryId} and d.completed_at is not null and d.signature_valid
       and (${outcome !== null}::boolean or (d.commission_id is null and own.id is not null))`;
}
