import type { AppId, CommissionId, AffiliateId, DeliveryId, EventId, ReprocessRunId } from '../domain/ids.ts';
import type { EventReading, ReprocessChange } from '../domain/reprocess.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Which deliveries of an app to run again. Instants are epoch ms, `to` excluded. */
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
 * Writes down a reprocess of the accepted deliveries that have their outcome by now, and how many they are. The service on
 * this database begins it by itself. Undefined for an unknown app, or for one delivery that the app does not have or
 * still works on.
 */
export async function requestReprocessing(
  sql: Sql,
  order: ReprocessRequest,
): Promise<ReprocessRunId | undefined> {
  const { appId, deliveryId } = order;
  const row = await sql.maybe<{ id: ReprocessRunId }>`
    with range as (
      select a.id as app_id,
             coalesce(${orNull(order.from)}::timestamptz, '-infinity') as from_at,
             least(now(), ${orNull(order.to)}::timestamptz) as to_at
        from apps a where a.id = ${appId}
    ), added as (
      insert into reprocess_runs (id, app_id, dry_run, delivery_id, from_at, to_at, deliveries)
      select ${order.id}, r.app_id, ${order.dryRun}, ${deliveryId}, r.from_at, greatest(r.from_at, r.to_at),
             (select count(*) from deliveries d
               where d.app_id = r.app_id and d.signature_valid and d.completed_at is not null
                 and case when ${deliveryId !== null}::boolean then d.id = ${deliveryId}
                          else d.received_at >= r.from_at and d.received_at < r.to_at end)
        from range r
       where ${deliveryId === null}::boolean
          or exists (select from deliveries d
                      where d.app_id = r.app_id and d.id = ${deliveryId} and d.signature_valid and d.completed_at is not null)
      on conflict (id) do nothing
      returning id
    )
    select id from added union select id from reprocess_runs where id = ${order.id}`;
  return row?.id;
}

export interface ReprocessRun {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  /** The one delivery that it is about; null where it is about a time. */
  readonly deliveryId: DeliveryId | null;
  /** How many deliveries it has to look at. */
  readonly deliveries: number;
  readonly seen: number;
  /** How many of the seen ones differ in anything. */
  readonly changed: number;
  /** To how many something was appended. */
  readonly applied: number;
  /** Why the last try of a page failed; it is tried again. */
  readonly lastError: string | null;
  readonly isStarted: boolean;
  readonly isFinished: boolean;
  readonly isCancelled: boolean;
}

/** How far a reprocess is. Undefined for an unknown id. */
export async function findReprocessRun(sql: Sql, id: ReprocessRunId): Promise<ReprocessRun | undefined> {
  return await sql.maybe<ReprocessRun>`
    select id, app_id, dry_run, delivery_id,
           greatest(deliveries, seen) as deliveries, seen, changed, applied, last_error,
           relayed_at is not null as is_started, finished_at is not null as is_finished, cancelled as is_cancelled
      from reprocess_runs where id = ${id}`;
}

/**
 * Takes reprocess runs that nobody works on: new ones at once, those begun `olderThanMs` ago once more (a workflow that still
 * runs is left alone).
 */
export async function claimReprocessRuns(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<ReprocessRunId[]> {
  const rows = await sql<{ id: ReprocessRunId }>`
    update reprocess_runs set relayed_at = now()
     where finished_at is null and id in (
       select id from reprocess_runs
        where finished_at is null
          and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
        order by coalesce(relayed_at, created_at)
        limit ${limit}
        for update skip locked)
    returning id`;
  return rows.map((row) => row.id);
}

/** A delivery that a reprocess comes to. */
export interface ReprocessedDelivery {
  readonly deliveryId: DeliveryId;
  readonly receivedAt: number;
}

/** The next deliveries of a reprocess, in the order in which they came. Empty at its end. */
export async function findNextDeliveries(
  sql: Sql,
  { id, deliveryId }: Pick<ReprocessRun, 'id' | 'deliveryId'>,
  limit: number,
): Promise<ReprocessedDelivery[]> {
  if (deliveryId !== null) {
    return await sql<ReprocessedDelivery>`
      select d.id as delivery_id, d.received_at
        from reprocess_runs r join deliveries d on d.id = r.delivery_id
       where r.id = ${id} and r.finished_at is null and r.last_delivery_id is null`;
  }
  return await sql<ReprocessedDelivery>`
    select d.id as delivery_id, d.received_at
      from reprocess_runs r
     cross join lateral (
       select x.id, x.received_at from deliveries x
        where x.app_id = r.app_id and x.signature_valid and x.completed_at is not null and x.received_at < r.to_at
          and (x.received_at, x.id::text) > (coalesce(r.last_received_at, r.from_at), coalesce(r.last_delivery_id::text, ''))
        order by x.received_at, x.id limit ${limit}) d
     where r.id = ${id} and r.finished_at is null
     order by d.received_at, d.id`;
}

/** What a delivery speaks of, as opaque texts. One that asks for what an earlier one tells builds on that. */
export interface DeliveryNames {
  readonly provides: readonly string[];
  readonly requires: readonly string[];
}

/** What today's code would change of one delivery. */
export interface DeliveryPlan extends ReprocessedDelivery {
  readonly changes: readonly ReprocessChange[];
  readonly names: DeliveryNames;
}

/** Writes down what deliveries would change. A delivery that has its plan already keeps it. */
export async function recordPlans(
  sql: Sql,
  reprocess: ReprocessRun,
  plans: readonly DeliveryPlan[],
): Promise<void> {
  if (plans.length === 0) return;
  await sql`
    with planned as (
      select * from jsonb_to_recordset(${sql.json(plans)}) p ("deliveryId" text, "receivedAt" bigint, changes jsonb, names jsonb)
    ), added as (
      insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
      select ${reprocess.appId}, ${reprocess.id}, p."deliveryId", to_timestamp(p."receivedAt" / 1000.0), p.changes,
             jsonb_path_exists(p.changes, '$[*] ? (@.action == "append")')
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

/** A delivery whose plan was written down. */
export interface PlannedDelivery extends ReprocessedDelivery {
  /** Whether it has still to be carried out. */
  readonly isOpen: boolean;
}

/** More than any page; the limit keeps the planner to the index. */
const PLANNED_LIMIT = 100;

/** The plans of the page at which a reprocess is, in their order. */
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

/** A delivery names no more than a few; the limits keep the planner, too, from reading all names of a reprocess. */
const NAMES_LIMIT = 100;

/**
 * The earlier deliveries to which this reprocess found something to append, and on which one that asks for `names` builds:
 * they tell of it, or of what such a one asks for. In their order, the latest `limit` of them.
 */
export async function findDependencies(
  sql: Sql,
  id: ReprocessRunId,
  { deliveryId, receivedAt }: ReprocessedDelivery,
  names: readonly string[],
  limit: number,
): Promise<DeliveryId[]> {
  if (names.length === 0) return [];
  const telling = (name: ReturnType<Sql['fragment']>) => sql.fragment`
    select t.delivery_id from reprocess_names t
     where t.reprocess_run_id = ${id} and t.name = ${name} and t.provides order by t.delivery_id desc limit ${limit}`;
  const rows = await sql<{ deliveryId: DeliveryId }>`
    with recursive found (delivery_id) as (
      select t.delivery_id from unnest(${[...names]}::text[]) n (name) cross join lateral (${telling(sql.fragment`n.name`)}) t
      union
      select other.delivery_id
        from found f
       cross join lateral (
         select n.name from reprocess_names n
          where n.reprocess_run_id = ${id} and n.delivery_id = f.delivery_id limit ${NAMES_LIMIT}) own
       cross join lateral (${telling(sql.fragment`own.name`)}) other
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

/** Notes that a plan was carried out, or why it was stopped. */
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

/** Moves a reprocess on behind the last delivery of a page. Doing it twice moves it once. */
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
           applied = r.applied + c.applied, last_error = null
      from deliveries d,
           (select count(*)::int as changed, count(applied_at)::int as applied from reprocess_changes
             where reprocess_run_id = ${reprocess.id} and delivery_id = any(${page.map((row) => row.deliveryId)}::text[])) c
     where r.id = ${reprocess.id} and r.seen = ${reprocess.seen} and d.id = ${last.deliveryId}`;
}

/** Notes why a page failed. It is tried again; who waits for the reprocess is told. */
export async function recordReprocessError(sql: Sql, id: ReprocessRunId, error: string): Promise<void> {
  await sql`update reprocess_runs set last_error = ${error} where id = ${id} and finished_at is null`;
}

/** Ends a reprocess. */
export async function finishReprocessRun(sql: Sql, id: ReprocessRunId): Promise<void> {
  await sql`update reprocess_runs set finished_at = now(), last_error = null where id = ${id} and finished_at is null`;
}

/**
 * Has a reprocess end before its time, once it has carried out the plans that it has begun with: at once where nobody has
 * taken it up. Whether it was under way.
 */
export async function cancelReprocessRun(sql: Sql, id: ReprocessRunId): Promise<boolean> {
  const { cancelled } = await sql.one<{ cancelled: boolean }>`
    with ended as (
      update reprocess_runs set cancelled = true, finished_at = case when relayed_at is null then now() end
       where id = ${id} and finished_at is null returning id
    )
    select exists (select from ended) or exists (select from reprocess_runs where id = ${id} and cancelled) as cancelled`;
  return cancelled;
}

/** A row of what a reprocess found. */
export interface ReprocessFinding extends ReprocessedDelivery {
  /** The provider that sent it. */
  readonly source: string;
  readonly eventId: EventId;
  readonly changes: readonly ReprocessChange[];
  readonly appliedAt: number | null;
  readonly refusal: string | null;
}

/** A page of what a reprocess found, in the order in which the deliveries came. */
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

/** A commission that a reprocess appended. */
export interface ReprocessedCommission {
  readonly commissionId: CommissionId;
  readonly eventId: EventId;
  readonly affiliateId: AffiliateId;
  readonly kind: 'earning' | 'reversal';
  readonly amountCents: number;
}

/** A page of the commissions that a reprocess appended, by their ids: from the rows themselves, not from what was planned. */
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

/** The sums of what a reprocess appended to the ledger, in cents, from the rows themselves. */
export async function sumReprocessed(
  sql: Sql,
  id: ReprocessRunId,
): Promise<{ commissionCents: number; revenueCents: number }> {
  return await sql.one<{ commissionCents: number; revenueCents: number }>`
    select (select coalesce(sum(amount_cents), 0)::bigint from commissions where reprocess_run_id = ${id}) as commission_cents,
           (select coalesce(sum(amount_cents), 0)::bigint from revenue_entries where reprocess_run_id = ${id}) as revenue_cents`;
}

/** What is stored of the event that this delivery told; undefined where it told none, or not as the first. */
export async function findReading(sql: Sql, deliveryId: DeliveryId): Promise<EventReading | undefined> {
  return await sql.maybe<EventReading>`
    select e.source_event_id, e.kind, e.environment, e.occurred_at,
           e.product_id, e.store, e.payment_ref, e.currency,
           e.amount_minor, e.amount_cents as usd_cents
      from events e
     where e.delivery_id = ${deliveryId}`;
}

/**
 * Raises the outcome of a delivery that a reprocess made more of, if `outcome` is more than it had, and names the commission
 * of its event where the delivery names none yet. An event that tells once more of a payment has no cause of its own: the
 * payment may have come from elsewhere meanwhile. Nothing is written where nothing is new.
 */
export async function raiseOutcome(
  sql: Sql,
  deliveryId: DeliveryId,
  outcome: { status: string; reason: string | null } | null,
  sourceEventId: string | null,
): Promise<void> {
  await sql`
    with told_again as (
      update events e set likely_cause = null
       where e.delivery_id = ${deliveryId} and e.likely_cause is not null and e.amount_minor is not null
         and exists (select from payments p
                      where p.app_id = e.app_id and p.environment = e.environment and p.store = e.store
                        and p.ref = e.payment_ref and p.event_id <> e.id)
    )
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
