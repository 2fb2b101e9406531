import type { AppId, DeliveryId, KeyId, ReprocessRunId } from '../domain/ids.ts';
import { MAX_REQUESTED_DELIVERIES } from '../domain/reprocess.ts';
import type { DeliveryOutcomeStatus, ReprocessChange } from '../domain/reprocess.ts';
import type { ProviderName } from '../providers/index.ts';
import { acting } from './audit.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { ofStatus } from './reprocess-deliveries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Who requests a run over the API, and for which app. */
export interface RunRequest {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly keyId: KeyId;
}

/** The deliveries of a dry run: one of them, or those of a range that match the filters. Null selects all. */
export interface RunSelection {
  readonly deliveryId: DeliveryId | null;
  /** The webhook arrived in `from ≤ t < to`. */
  readonly from: number;
  readonly to: number;
  readonly source: ProviderName | null;
  readonly processingStatus: DeliveryOutcomeStatus | null;
}

/** The outcome of a request. `open` names the run of the app that is in progress. */
export type Requested =
  | { readonly outcome: 'requested' | 'open'; readonly id: ReprocessRunId }
  | { readonly outcome: 'too_many' | 'not_found' | 'not_applicable' };

/** The columns of a request that several statements share. */
interface RequestRow {
  readonly requestedId: ReprocessRunId | null;
  readonly openId: ReprocessRunId | null;
  readonly problem: 'too_many' | 'not_found' | 'not_applicable' | null;
}

const openRun = (sql: Sql, appId: AppId) => sql.fragment`
  (select r.id from reprocess_runs r where r.finished_at is null and r.app_id = ${appId} order by r.created_at limit 1)`;

/** Sends the statement of a request. One that loses a race for the place of an app's run is sent again, and sees the winner. */
async function sendRequest(send: () => Promise<RequestRow>): Promise<Requested> {
  const { requestedId, openId, problem } = await send();
  if (requestedId !== null) return { outcome: 'requested', id: requestedId };
  if (problem !== null) return { outcome: problem };
  if (openId !== null) return { outcome: 'open', id: openId };
  return await sendRequest(send);
}

/**
 * Requests a dry run. The service on this database starts it. Examines at most one delivery more than the limit of a range.
 * A delivery must be accepted, have an outcome and a stored body.
 */
export async function requestDryRun(
  sql: Sql,
  { id, appId, keyId }: RunRequest,
  { deliveryId, from, to, source, processingStatus }: RunSelection,
): Promise<Requested> {
  const chosen =
    deliveryId === null
      ? sql.fragment`
          select x.provider from deliveries x
           where x.app_id = ${appId} and x.signature_valid and x.completed_at is not null ${ofStatus(sql, processingStatus)}
             and x.received_at >= ${instant(from)} and x.received_at < ${instant(to)}
           order by x.received_at desc, x.id desc limit ${MAX_REQUESTED_DELIVERIES + 1}`
      : sql.fragment`
          select x.provider from deliveries x
           where x.id = ${deliveryId} and x.app_id = ${appId} and x.signature_valid and x.completed_at is not null
             and exists (select from delivery_bodies b where b.delivery_id = x.id)`;
  return await sendRequest(
    async () =>
      await sql.one<RequestRow>`
    with chosen as materialized (${chosen}
    ), counted as (
      select count(*)::int as examined, (count(*) filter (where ${source}::text is null or provider = ${source}))::int as deliveries
        from chosen
    ), problem as (
      select case when examined > ${MAX_REQUESTED_DELIVERIES} then 'too_many'
                  when examined = 0 and ${deliveryId}::text is not null then 'not_found' end as problem
        from counted
    ), open as (
      select ${openRun(sql, appId)} as id
    ), added as (
      insert into reprocess_runs (id, app_id, dry_run, delivery_id, from_at, to_at, provider, processing_status, deliveries, key_id)
      select ${id}, ${appId}, true, ${deliveryId}, ${instant(from)}::timestamptz, ${instant(to)}::timestamptz, ${source},
             ${processingStatus}, c.deliveries, ${keyId}
        from counted c, problem p, open o
       where p.problem is null and o.id is null and ${acting(sql)}
      on conflict do nothing
      returning id
    )
    select coalesce((select id from added), (select id from reprocess_runs where id = ${id})) as requested_id,
           (select id from open) as open_id, (select problem from problem) as problem`,
  );
}

/**
 * Requests a run that applies the plans of a dry run that has ended, and nothing else. `not_applicable`: it was no dry run,
 * has not ended, was cancelled, or shows nothing to append.
 */
export async function requestApplication(
  sql: Sql,
  { id, appId, keyId }: RunRequest,
  dryRunId: ReprocessRunId,
): Promise<Requested> {
  return await sendRequest(
    async () =>
      await sql.one<RequestRow>`
    with shown as materialized (
      select r.id, r.to_at, r.dry_run and r.finished_at is not null and not r.cancelled as is_usable
        from reprocess_runs r where r.app_id = ${appId} and r.id = ${dryRunId}
    ), counted as (
      select count(*)::int as deliveries
        from (select from reprocess_changes x
               where x.reprocess_run_id = (select s.id from shown s where s.is_usable) and x.appends
               order by x.received_at, x.delivery_id limit ${MAX_REQUESTED_DELIVERIES + 1}) c
    ), problem as (
      select case when not exists (select from shown) then 'not_found'
                  when c.deliveries = 0 then 'not_applicable'
                  when c.deliveries > ${MAX_REQUESTED_DELIVERIES} then 'too_many' end as problem
        from counted c
    ), open as (
      select ${openRun(sql, appId)} as id
    ), added as (
      insert into reprocess_runs (id, app_id, dry_run, from_at, to_at, deliveries, applies_run_id, key_id)
      select ${id}, ${appId}, false, s.to_at, s.to_at, c.deliveries, s.id, ${keyId}
        from shown s, counted c, problem p, open o
       where p.problem is null and o.id is null and ${acting(sql)}
      on conflict do nothing
      returning id
    )
    select coalesce((select id from added), (select id from reprocess_runs where id = ${id})) as requested_id,
           (select id from open) as open_id, (select problem from problem) as problem`,
  );
}

/** A run in a list. */
export interface ListedRun {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly dryRun: boolean;
  readonly appliesRunId: ReprocessRunId | null;
  /** The selection. That of a run that applies a dry run is the dry run's. */
  readonly deliveryId: DeliveryId | null;
  readonly from: number | null;
  readonly to: number | null;
  readonly source: ProviderName | null;
  readonly processingStatus: DeliveryOutcomeStatus | null;
  readonly deliveries: number;
  readonly seen: number;
  readonly changed: number;
  readonly applied: number;
  readonly commissionCents: number | null;
  readonly revenueCents: number | null;
  readonly lastError: string | null;
  readonly keyId: KeyId | null;
  readonly createdAt: number;
  readonly finishedAt: number | null;
  readonly isStarted: boolean;
  readonly isCancelled: boolean;
}

const columns = (sql: Sql) => sql.fragment`
  r.id, r.app_id, r.dry_run, r.applies_run_id, s.delivery_id, s.from_at as "from", s.to_at as "to", s.source,
  s.processing_status, greatest(r.deliveries, r.seen) as deliveries, r.seen, r.changed, r.applied, r.commission_cents,
  r.revenue_cents, r.last_error, r.key_id, r.created_at, r.finished_at, r.relayed_at is not null as is_started,
  r.cancelled as is_cancelled, (extract(epoch from r.created_at) * 1000000)::bigint as sort_key`;

/** The selection of a run `r`, or of the dry run that it applies. A range without a beginning has no `from_at`. */
const selection = (sql: Sql) => sql.fragment`
  cross join lateral (
    select x.delivery_id, case when x.delivery_id is null then nullif(x.from_at, '-infinity') end as from_at,
           case when x.delivery_id is null then x.to_at end as to_at, x.provider as source, x.processing_status
      from reprocess_runs x where x.id = coalesce(r.applies_run_id, r.id) limit 1) s`;

/** Returns a page of an app's reprocess runs, the latest first. With null, of the runs of all apps. */
export async function listReprocessRuns(
  sql: Sql,
  appId: AppId | null,
  after: Position<number> | null,
  limit: number,
): Promise<Page<ListedRun, number>> {
  const none = sql.fragment``;
  const ofApp = appId === null ? none : sql.fragment`and r.app_id = ${appId}`;
  const from =
    after === null
      ? none
      : sql.fragment`and (r.created_at, r.id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<ListedRun & Position<number>>`
    select ${columns(sql)}
      from (select * from reprocess_runs r where true ${ofApp} ${from} order by r.created_at desc, r.id desc limit ${limit + 1}) r
      ${selection(sql)}
     order by r.created_at desc, r.id desc`;
  return pageOf(rows, limit);
}

/** A run that is shown alone. */
export interface FoundRun extends ListedRun {
  /** Whether it is a dry run that has ended with something to append, which no run has applied or applies. */
  readonly isApplicable: boolean;
}

/** How many of the latest runs of an app are searched for one that applies a dry run. */
const APPLYING_EXAMINED = 100;

/** Returns a reprocess run of an app. Undefined for an unknown one. */
export async function findListedRun(
  sql: Sql,
  appId: AppId,
  id: ReprocessRunId,
): Promise<FoundRun | undefined> {
  return await sql.maybe<FoundRun>`
    select ${columns(sql)},
           r.dry_run and r.finished_at is not null and not r.cancelled
           and exists (select from reprocess_changes c where c.reprocess_run_id = r.id and c.appends)
           and not exists (
             select from (select x.applies_run_id, x.cancelled from reprocess_runs x where x.app_id = r.app_id
                           order by x.created_at desc, x.id desc limit ${APPLYING_EXAMINED}) a
              where a.applies_run_id = r.id and not a.cancelled) as is_applicable
      from reprocess_runs r ${selection(sql)} where r.app_id = ${appId} and r.id = ${id}`;
}

/** What a run found about one delivery. */
export interface ListedPlan {
  readonly deliveryId: DeliveryId;
  readonly source: ProviderName;
  readonly receivedAt: number;
  readonly changes: readonly ReprocessChange[];
  readonly appends: boolean;
  readonly appliedAt: number | null;
  readonly refusal: string | null;
}

/** Returns a page of the plans of an app's run, in the order of receipt. */
export async function listPlans(
  sql: Sql,
  appId: AppId,
  id: ReprocessRunId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<ListedPlan, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (c.received_at, c.delivery_id) > (${instant(after.sortKey)}, ${after.id})`;
  const rows = await sql<ListedPlan & Position<number>>`
    select c.delivery_id as id, c.delivery_id, d.provider as source, c.received_at, c.changes, c.appends, c.applied_at, c.refusal,
           epoch_ms(c.received_at) as sort_key
      from (select * from reprocess_changes c
             where c.reprocess_run_id = ${id} and c.app_id = ${appId} ${from}
             order by c.received_at, c.delivery_id limit ${limit + 1}) c
     cross join lateral (select x.provider from deliveries x where x.id = c.delivery_id limit 1) d
     order by c.received_at, c.delivery_id`;
  return pageOf(rows, limit);
}
