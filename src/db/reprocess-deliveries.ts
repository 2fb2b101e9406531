import type { DeliveryId, ReprocessRunId } from '../domain/ids.ts';
import type { DeliveryOutcomeStatus, EventReading, ReprocessChange } from '../domain/reprocess.ts';
import { removeEncryptedBody } from './deliveries.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';
import type { ReprocessRun } from './reprocess.ts';

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
  /** How the money that a refused plan would append compares with what the dry run showed. Null for one that is not refused. */
  readonly moneyLeft: 'none' | 'part' | 'other' | null;
}

/**
 * Stores the plans of deliveries. An existing plan stays. If its page was interrupted before it was applied, it is refused where today's would
 * append other money, or a part of it although the run has appended nothing of the delivery.
 */
export async function recordPlans(
  sql: Sql,
  reprocess: ReprocessRun,
  plans: readonly DeliveryPlan[],
): Promise<void> {
  if (plans.length === 0) return;
  await sql`
    with planned as (
      select * from jsonb_to_recordset(${sql.json(plans)}) p ("deliveryId" text, changes jsonb, names jsonb, refusal text, "moneyLeft" text)
    ), refused as (
      update reprocess_changes c set refusal = p.refusal
        from planned p
       where c.reprocess_run_id = ${reprocess.id} and c.delivery_id = p."deliveryId"
         and (p."moneyLeft" = 'other'
              or p."moneyLeft" = 'part'
                 and not exists (select from deliveries d join commissions k on k.event_id = d.event_id
                                  where d.id = p."deliveryId" and k.reprocess_run_id = ${reprocess.id}))
         and c.appends and c.applied_at is null and c.refusal is null
    ), added as (
      insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends, refusal)
      select ${reprocess.appId}, ${reprocess.id}, p."deliveryId", d.received_at, p.changes,
             jsonb_path_exists(p.changes, '$[*] ? (@.action == "append")'), p.refusal
        from planned p join deliveries d on d.id = p."deliveryId"
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
  const providers = (name: Fragment) => sql.fragment`
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
         -- A refund or dispute may have a cause of its own: it waits for a rate.
         and not exists (select from adjustments a
                          where a.app_id = e.app_id and a.environment = e.environment and a.store = e.store
                            and a.payment_ref = e.payment_ref and a.event_id = e.id)
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
