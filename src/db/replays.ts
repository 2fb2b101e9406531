import type { AppId, DeliveryId, EventId, ReplayId } from '../domain/ids.ts';
import type { EventReading, ReplayChange } from '../domain/replay.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Which deliveries of an app to run again. Instants are epoch ms, `to` excluded. */
export interface ReplayOrder {
  readonly id: ReplayId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  readonly deliveryId: DeliveryId | null;
  readonly from: number | null;
  readonly to: number | null;
}

const orNull = (at: number | null) => (at === null ? null : instant(at));

/**
 * Writes down a replay of the accepted deliveries that have their outcome by now, and how many they are. The service on
 * this database begins it by itself. Undefined for an unknown app, or for one delivery that the app does not have.
 */
export async function orderReplay(sql: Sql, order: ReplayOrder): Promise<ReplayId | undefined> {
  const { appId, deliveryId } = order;
  const row = await sql.maybe<{ id: ReplayId }>`
    with range as (
      select a.id as app_id,
             coalesce(${orNull(order.from)}::timestamptz, '-infinity') as from_at,
             least(now(), ${orNull(order.to)}::timestamptz) as to_at
        from apps a where a.id = ${appId}
    ), added as (
      insert into replays (id, app_id, dry_run, delivery_id, from_at, to_at, deliveries)
      select ${order.id}, r.app_id, ${order.dryRun}, ${deliveryId}, r.from_at, greatest(r.from_at, r.to_at),
             (select count(*) from deliveries d
               where d.app_id = r.app_id and d.signature_valid and d.completed_at is not null
                 and case when ${deliveryId !== null}::boolean then d.id = ${deliveryId}
                          else d.received_at >= r.from_at and d.received_at < r.to_at end)
        from range r
       where ${deliveryId === null}::boolean
          or exists (select from deliveries d where d.app_id = r.app_id and d.id = ${deliveryId} and d.signature_valid)
      on conflict (id) do nothing
      returning id
    )
    select id from added union select id from replays where id = ${order.id}`;
  return row?.id;
}

export interface Replay {
  readonly id: ReplayId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  /** How many deliveries it has to look at. */
  readonly deliveries: number;
  readonly seen: number;
  /** How many of the seen ones differ in anything. */
  readonly changed: number;
  /** To how many something was appended. */
  readonly applied: number;
  readonly isTakenUp: boolean;
  readonly isFinished: boolean;
}

/** How far a replay is. Undefined for an unknown id. */
export async function findReplay(sql: Sql, id: ReplayId): Promise<Replay | undefined> {
  return await sql.maybe<Replay>`
    select r.id, r.app_id as "appId", r.dry_run as "dryRun", r.deliveries, r.seen, c.changed, c.applied,
           r.relayed_at is not null as "isTakenUp", r.finished_at is not null as "isFinished"
      from replays r
     cross join lateral (select count(*)::int as changed, count(applied_at)::int as applied
                           from replay_changes where replay_id = r.id) c
     where r.id = ${id}`;
}

/**
 * Takes replays that nobody works on: new ones at once, those begun `olderThanMs` ago once more (a workflow that still
 * runs is left alone).
 */
export async function claimReplays(sql: Sql, olderThanMs: number, limit: number): Promise<ReplayId[]> {
  const rows = await sql<{ id: ReplayId }>`
    update replays set relayed_at = now()
     where finished_at is null and id in (
       select id from replays
        where finished_at is null
          and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
        order by coalesce(relayed_at, created_at)
        limit ${limit}
        for update skip locked)
    returning id`;
  return rows.map((row) => row.id);
}

/** A delivery that a replay comes to. */
export interface ReplayedDelivery {
  readonly deliveryId: DeliveryId;
  readonly receivedAt: number;
}

/** The next deliveries of a replay, in the order in which they came. Empty at its end. */
export async function findNextDeliveries(sql: Sql, id: ReplayId, limit: number): Promise<ReplayedDelivery[]> {
  return await sql<ReplayedDelivery>`
    select d.id as "deliveryId", d.received_at as "receivedAt"
      from replays r
     cross join lateral (
       select x.id, x.received_at from deliveries x
        where x.app_id = r.app_id and x.signature_valid and x.completed_at is not null
          and (case when r.delivery_id is not null then x.id = r.delivery_id and r.seen_id is null
                    else x.received_at >= r.from_at and x.received_at < r.to_at end)
          and (r.seen_id is null or (x.received_at, x.id) > (r.seen_at, r.seen_id))
        order by x.received_at, x.id limit ${limit}) d
     where r.id = ${id} and r.finished_at is null
     order by d.received_at, d.id`;
}

/** What today's code would change of one delivery. */
export interface DeliveryPlan extends ReplayedDelivery {
  readonly changes: readonly ReplayChange[];
}

/** Writes down what deliveries would change. A delivery that has its plan already keeps it. */
export async function recordPlans(sql: Sql, replay: Replay, plans: readonly DeliveryPlan[]): Promise<void> {
  await sql`
    insert into replay_changes (app_id, replay_id, delivery_id, received_at, changes, appends)
    select ${replay.appId}, ${replay.id}, p."deliveryId", to_timestamp(p."receivedAt" / 1000.0), p.changes,
           jsonb_path_exists(p.changes, '$[*] ? (@.action == "append")')
      from jsonb_to_recordset(${sql.json(plans)}) p ("deliveryId" text, "receivedAt" bigint, changes jsonb)
    on conflict (replay_id, delivery_id) do nothing`;
}

/** Those of the deliveries that have a plan to append something which is not applied yet, in their order. */
export async function findUnapplied(
  sql: Sql,
  id: ReplayId,
  deliveryIds: readonly DeliveryId[],
): Promise<DeliveryId[]> {
  const rows = await sql<{ deliveryId: DeliveryId }>`
    select delivery_id as "deliveryId" from replay_changes
     where replay_id = ${id} and delivery_id = any(${[...deliveryIds]}::text[]) and appends and applied_at is null
     order by received_at, delivery_id`;
  return rows.map((row) => row.deliveryId);
}

/** The last deliveries that this replay found something to append to, in their order. */
export async function findAppending(sql: Sql, id: ReplayId, limit: number): Promise<DeliveryId[]> {
  const rows = await sql<{ deliveryId: DeliveryId }>`
    select delivery_id as "deliveryId" from (
      select delivery_id, received_at from replay_changes where replay_id = ${id} and appends
       order by received_at desc, delivery_id desc limit ${limit}) c
     order by received_at, delivery_id`;
  return rows.map((row) => row.deliveryId);
}

/** Notes that a plan was carried out. */
export async function markApplied(sql: Sql, id: ReplayId, deliveryId: DeliveryId): Promise<void> {
  await sql`
    update replay_changes set applied_at = now()
     where replay_id = ${id} and delivery_id = ${deliveryId} and applied_at is null`;
}

/** Moves a replay on behind the last delivery of a page. Doing it twice moves it once. */
export async function advanceReplay(
  sql: Sql,
  replay: Replay,
  page: readonly ReplayedDelivery[],
): Promise<void> {
  const last = page.at(-1);
  if (last === undefined) return;
  await sql`
    update replays r set seen = ${replay.seen + page.length}, seen_at = d.received_at, seen_id = d.id
      from deliveries d
     where r.id = ${replay.id} and r.seen = ${replay.seen} and d.id = ${last.deliveryId}`;
}

/** Ends a replay. */
export async function finishReplay(sql: Sql, id: ReplayId): Promise<void> {
  await sql`update replays set finished_at = now() where id = ${id} and finished_at is null`;
}

/** A page of what a replay found, in the order in which the deliveries came. */
export async function listReplayChanges(
  sql: Sql,
  id: ReplayId,
  after: ReplayedDelivery | null,
  limit: number,
): Promise<(DeliveryPlan & { provider: string; eventId: EventId; appliedAt: number | null })[]> {
  return await sql`
    select c.delivery_id as "deliveryId", c.received_at as "receivedAt", d.provider, d.event_id as "eventId", c.changes,
           c.applied_at as "appliedAt"
      from replay_changes c join deliveries d on d.id = c.delivery_id
     where c.replay_id = ${id}
       and (${after === null}::boolean
            or (c.received_at, c.delivery_id) > (
              select x.received_at, x.delivery_id from replay_changes x
               where x.replay_id = ${id} and x.delivery_id = ${after?.deliveryId ?? ''}))
     order by c.received_at, c.delivery_id limit ${limit}`;
}

/** What is stored of the event that this delivery told; undefined where it told none, or not as the first. */
export async function findReading(sql: Sql, deliveryId: DeliveryId): Promise<EventReading | undefined> {
  return await sql.maybe<EventReading>`
    select e.source_event_id as "sourceEventId", e.kind, e.environment, e.occurred_at as "occurredAt",
           e.product_id as "productId", e.store, e.payment_ref as "paymentRef", e.currency,
           e.amount_minor as "amountMinor", e.amount_cents as "usdCents"
      from events e
     where e.delivery_id = ${deliveryId}`;
}

/** Raises the outcome of a delivery that a replay made more of, with the event and the commission that it has now. */
export async function amendOutcome(
  sql: Sql,
  deliveryId: DeliveryId,
  outcome: { status: string; reason: string | null; sourceEventId: string | null },
): Promise<void> {
  await sql`
    update deliveries d
       set processing_status = ${outcome.status}, last_error = ${outcome.reason},
           source_event_id = coalesce(d.source_event_id, ${outcome.sourceEventId}),
           event_count = (select count(*) from events e where e.delivery_id = d.id),
           commission_id = coalesce(d.commission_id, (select c.id from commissions c where c.event_id = d.event_id
                                                       order by c.created_at desc, c.id desc limit 1))
     where d.id = ${deliveryId} and d.completed_at is not null and d.signature_valid`;
}
