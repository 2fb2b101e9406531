import type { AttributableKey } from '../domain/attributable-key.ts';
import type { LikelyCause } from '../domain/likely-causes.ts';
import type { EventKind } from '../domain/events.ts';
import type { AppId, DeliveryId, EventId } from '../domain/ids.ts';
import { LIKELY_CAUSES } from '../domain/likely-causes.ts';
import type { ProviderName } from '../providers/index.ts';
import type { ProcessingStatus } from '../domain/delivery.ts';
import { attributableKeyOf } from './attributable-keys.ts';
import { waitsUntil } from './event-feed.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, positionInstant } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

export interface UnattributedEvent {
  readonly eventId: EventId;
  readonly source: ProviderName;
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly customerUserId: string | null;
  readonly amountCents: number | null;
  readonly occurredAt: number;
  readonly receivedAt: number;
  readonly likelyCause: LikelyCause;
  /** When the payment is decided, about, epoch ms. Null if it was, and if its cause says what it waits for. */
  readonly waitsUntil: number | null;
  /** Null if the event names a user, or nothing stands for one. */
  readonly attributableKey: (AttributableKey & { readonly keySource: ProviderName }) | null;
}

/** The filters of a list of unattributed events. Null selects all rows. The payment is in `from ≤ t < to`. */
export interface UnattributedFilter {
  readonly likelyCause: LikelyCause | null;
  readonly source: ProviderName | null;
  readonly customerUserId: string | null;
  readonly from: number | null;
  readonly to: number | null;
}

/** Returns the condition that a column is in the range of a filter. */
function inRange(
  sql: Sql,
  column: 'occurred_at' | 'received_at',
  { from, to }: { readonly from: number | null; readonly to: number | null },
) {
  const name = column === 'occurred_at' ? sql.fragment`occurred_at` : sql.fragment`received_at`;
  const since = from === null ? sql.fragment`` : sql.fragment`and ${name} >= ${instant(from)}`;
  return to === null ? since : sql.fragment`${since} and ${name} < ${instant(to)}`;
}

/**
 * Returns a page of an app's paid events without a commission, the latest first. Only production events have a cause. An
 * index selects the user or the cause, and the range. A page with any other filter examines at most `examines` rows of it
 * and may have fewer than `limit`.
 */
export async function listUnattributedEvents(
  sql: Sql,
  appId: AppId,
  filter: UnattributedFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<UnattributedEvent, number>> {
  const { likelyCause, source, customerUserId } = filter;
  const none = sql.fragment``;
  const from =
    after === null ? none : sql.fragment`and (occurred_at, id) < (${instant(after.sortKey)}, ${after.id})`;
  const ofUser = customerUserId === null ? none : sql.fragment`and customer_user_id = ${customerUserId}`;
  const ofCause = likelyCause === null ? none : sql.fragment`and likely_cause = ${likelyCause}`;
  const ofSource = source === null ? none : sql.fragment`and source = ${source}`;
  const isIndexed = source === null && (likelyCause === null || customerUserId === null);
  const rows = await sql<UnattributedEvent & Position<number> & Examined>`
    with walked as (
      select e.*, row_number() over (order by occurred_at desc, id desc) as examined
        from events e
       where app_id = ${appId} and likely_cause is not null ${customerUserId === null ? ofCause : ofUser}
             ${inRange(sql, 'occurred_at', filter)} ${from}
       order by occurred_at desc, id desc limit ${isIndexed ? limit + 1 : examines}
    ), page as (
      ${matchesOf(sql, sql.fragment`walked e`, sql.fragment`true ${ofCause} ${ofSource}`, sql.fragment`occurred_at desc, id desc`, { limit, examines })}
    )
    select id, id as event_id, source, source_event_id, kind, customer_user_id, amount_cents, occurred_at, received_at,
           likely_cause, ${waitsUntil(sql)} as waits_until, epoch_ms(occurred_at) as sort_key, is_match, examined,
           case when customer_user_id is null then (
             select ${attributableKeyOf(sql, sql.fragment`e.likely_cause`)} from payments p
              where p.app_id = ${appId} and p.environment = e.environment and p.store = e.store and p.ref = e.payment_ref) end
             as attributable_key
      from page e
     order by examined`;
  return isIndexed ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/** How many rows of each kind a summary counts at most. Then its numbers are lower bounds. */
const SUMMARY_COUNTS = 4_000;

/** The unattributed events of one cause in a range. */
export interface CauseSummary {
  readonly likelyCause: LikelyCause;
  readonly count: number;
  /** The sum of the known amounts. */
  readonly amountCents: number;
  /** How many of them have no known amount. */
  readonly unknownCount: number;
  /** How many of them stay without a commission, because a person gave the customer to a creator from a later time on. */
  readonly settledCount: number;
  /** Whether there may be more, because as many as are counted at most were found. */
  readonly truncated: boolean;
  readonly latestAt: number;
}

/**
 * Whether an event `e` reports a payment from before a manual attribution of its customer. Each payment has few customers and keys, so
 * this reads few rows.
 */
const isBeforeManualAttribution = (sql: Sql) => sql.fragment`
  exists (
    select from (select x.id from payments x
                  where x.app_id = e.app_id and x.environment = e.environment and x.store = e.store and x.ref = e.payment_ref offset 0) p
     cross join lateral (
       select w.customer_user_id from payment_users w where w.payment_id = p.id
        union all
       select k.user_key from payment_user_keys k where k.payment_id = p.id
        union all
       select l.customer_user_id
         from payment_user_keys k
         join user_links l on l.app_id = k.app_id and l.environment = k.environment and l.source = k.source and l.user_key = k.user_key
        where k.payment_id = p.id offset 0) w
     cross join lateral (
       select x.attribution_id from bindings x where x.app_id = e.app_id and x.customer_user_id = w.customer_user_id offset 0) b
     cross join lateral (
       select x.match_method, x.touched_at from attributions x where x.id = b.attribution_id offset 0) t
     where t.match_method = 'manual' and least(e.occurred_at, e.received_at) < t.touched_at)`;

/** The cause of payments from before a manual attribution, among others. */
const BEFORE_BINDING: LikelyCause = 'outside_attribution_window';

/**
 * Returns how many payments of a range earned nothing and their money, by cause, the most money first. Reads at most `most`
 * rows per cause, the latest, from an index that contains their amounts, so the cost does not grow with the table. Only in an app with
 * manual attributions it also looks up the customers of those that were bound too late.
 */
export async function summarizeUnattributed(
  sql: Sql,
  appId: AppId,
  range: { readonly from: number | null; readonly to: number | null },
  most = SUMMARY_COUNTS,
): Promise<CauseSummary[]> {
  const settled = (cause: LikelyCause) =>
    cause === BEFORE_BINDING
      ? sql.fragment`count(*) filter (
          where exists (select from manual_attributions m where m.app_id = ${appId}) and ${isBeforeManualAttribution(sql)})`
      : sql.fragment`0::bigint`;
  const found = (cause: LikelyCause) =>
    cause === BEFORE_BINDING
      ? sql.fragment`amount_cents, occurred_at, received_at, app_id, environment, store, payment_ref`
      : sql.fragment`amount_cents, occurred_at`;
  const branches = LIKELY_CAUSES.map(
    (cause) => sql.fragment`
      select ${cause}::text as likely_cause, count(*) as count, coalesce(sum(e.amount_cents), 0)::bigint as amount_cents,
             count(*) filter (where e.amount_cents is null) as unknown_count, ${settled(cause)} as settled_count,
             max(e.occurred_at) as latest_at
        from (select ${found(cause)} from events
               where app_id = ${appId} and likely_cause is not null and likely_cause = ${cause} ${inRange(sql, 'occurred_at', range)}
               order by occurred_at desc, id desc limit ${most}) e`,
  );
  const causes = branches.reduce((all, branch) => sql.fragment`${all} union all ${branch}`);
  return await sql<CauseSummary>`
    select likely_cause, count, amount_cents, unknown_count, settled_count, count = ${most} as truncated, latest_at
      from (${causes}) c where count > 0 order by amount_cents desc, count desc, likely_cause`;
}

/** How well the webhooks of one provider arrive. Instants are epoch ms. */
export interface ProviderHealth {
  readonly provider: ProviderName;
  /** Whether a secret is set, so that webhooks can be accepted. */
  readonly isConfigured: boolean;
  /** The latest webhook that was accepted, not counting the self-test. */
  readonly lastAcceptedAt: number | null;
  readonly lastRefusedAt: number | null;
  /** Numbers since the beginning of the summary. What was fed back from an export is not among the accepted. */
  readonly accepted: number;
  readonly failed: number;
  readonly refused: number;
  /** Deliveries that have no outcome yet, whenever they were received. */
  readonly unfinished: number;
  readonly oldestUnfinishedAt: number | null;
  /** The numbers that may be higher, because as many rows as are counted at most were found. */
  readonly lowerBounds: readonly CappedCount[];
}

/** The numbers of a provider that are counted up to a limit. */
export const CAPPED_COUNTS = ['accepted', 'failed', 'unfinished'] as const;

export type CappedCount = (typeof CAPPED_COUNTS)[number];

/**
 * Returns the health of the webhooks of each of `providers` since an instant, in the same order. Each count reads at most `most` rows from an index,
 * and refused webhooks are counters of full hours.
 */
export async function summarizeDeliveries(
  sql: Sql,
  appId: AppId,
  providers: readonly string[],
  since: number,
  most = SUMMARY_COUNTS,
): Promise<ProviderHealth[]> {
  const ofStatus = (status: ProcessingStatus, columns: Fragment) => sql.fragment`
    select ${columns} from deliveries
     where app_id = ${appId} and processing_status = ${status} and processing_status <> 'processed'`;
  return await sql<ProviderHealth>`
    with failed as materialized (
      select provider, count(*) as count
        from (${ofStatus('failed', sql.fragment`provider`)} and received_at >= ${instant(since)}
               order by received_at desc, id desc limit ${most}) f group by 1
    ), unfinished as materialized (
      select provider, count(*) as count, min(received_at) as oldest_at
        from ((${ofStatus('received', sql.fragment`provider, received_at`)} order by received_at, id limit ${most})
              union all
              (${ofStatus('processing', sql.fragment`provider, received_at`)} order by received_at, id limit ${most})) u group by 1
    )
    select p.provider, s.found is not null as is_configured, last.received_at as last_accepted_at,
           (select d.received_at from deliveries d
             where d.app_id = ${appId} and d.provider = p.provider and d.refused_hour is not null
             order by d.refused_hour desc limit 1) as last_refused_at, accepted.count as accepted, coalesce(f.count, 0) as failed,
           refused.count as refused, coalesce(u.count, 0) as unfinished, u.oldest_at as oldest_unfinished_at,
           -- All providers share the rows that are counted of failed and of unfinished deliveries.
           array_remove(array[case when accepted.count = ${most} then 'accepted' end,
                              case when (select sum(count) from failed) >= ${most} then 'failed' end,
                              case when (select sum(count) from unfinished) >= ${most} then 'unfinished' end], null) as lower_bounds
      from unnest(${providers}::text[]) with ordinality p (provider, position)
     cross join lateral (
       select (select true from webhook_secrets w
                where w.app_id = ${appId} and w.provider = p.provider and w.expires_at is null limit 1) as found) s
     cross join lateral (
       select (select d.received_at from deliveries d
                where d.app_id = ${appId} and d.provider = p.provider and d.signature_valid and not d.is_self_test
                and d.proof->>'kind' is distinct from 'reconciliation'
                order by d.received_at desc nulls last limit 1) as received_at) last
     cross join lateral (
       select count(*) as count
         from (select from deliveries d
                where d.app_id = ${appId} and d.provider = p.provider and d.signature_valid and not d.is_self_test
                  and d.proof->>'kind' is distinct from 'reconciliation' and d.received_at >= ${instant(since)}
                order by d.received_at desc nulls last limit ${most}) x) accepted
     cross join lateral (
       select coalesce(sum(d.refused_count), 0)::bigint as count
         from deliveries d
        where d.app_id = ${appId} and d.provider = p.provider and d.refused_hour is not null
          and d.refused_hour >= date_trunc('hour', ${instant(since)}::timestamptz, 'UTC')) refused
      left join failed f on f.provider = p.provider
      left join unfinished u on u.provider = p.provider
     order by p.position`;
}

export interface WebhookDelivery {
  readonly id: DeliveryId;
  readonly source: ProviderName;
  readonly sourceEventId: string | null;
  /** The event id in the response to the webhook. Set even if the body could not be read. */
  readonly eventId: EventId;
  readonly receivedAt: number;
  readonly signatureValid: boolean;
  readonly processingStatus: ProcessingStatus;
  readonly lastError: string | null;
  readonly eventCount: number;
  /** Whether this service sent it to itself. */
  readonly selfTest: boolean;
}

/** The filters of a list of deliveries. Null selects all rows. */
export interface DeliveryFilter {
  readonly processingStatus: ProcessingStatus | null;
  readonly source: ProviderName | null;
  /** The webhook arrived in `from ≤ t < to`. */
  readonly from: number | null;
  readonly to: number | null;
}

/**
 * Returns a page of an app's deliveries, the latest first. Refused ones are one row per provider and hour. An index
 * selects any status but `processed`, which nearly all have. A page examines at most `examines` rows for that status and
 * for the source, and may have fewer than `limit`.
 */
export async function listWebhookDeliveries(
  sql: Sql,
  appId: AppId,
  filter: DeliveryFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<WebhookDelivery, number>> {
  const { processingStatus, source } = filter;
  const none = sql.fragment``;
  const from =
    after === null
      ? none
      : sql.fragment`and (received_at, id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const isRare = processingStatus !== null && processingStatus !== 'processed';
  const ofRareStatus = sql.fragment`and d.processing_status = ${processingStatus} and d.processing_status <> 'processed'`;
  const ifProcessed =
    processingStatus === 'processed' ? sql.fragment`and d.processing_status = 'processed'` : none;
  const ofSource = source === null ? none : sql.fragment`and d.provider = ${source}`;
  const isIndexed = source === null && processingStatus !== 'processed';
  const rows = await sql<WebhookDelivery & Position<number> & Examined>`
    with walked as (
      select d.*, row_number() over (order by received_at desc, id desc) as examined
        from deliveries d
       where d.app_id = ${appId} ${isRare ? ofRareStatus : none} ${inRange(sql, 'received_at', filter)} ${from}
       order by received_at desc, id desc limit ${isIndexed ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked d`, sql.fragment`true ${ifProcessed} ${ofSource}`, sql.fragment`received_at desc, id desc`, { limit, examines })}
    )
    select id, provider as source, source_event_id, event_id, received_at,
           signature_valid, processing_status, last_error,
           event_count, is_self_test as self_test, (extract(epoch from received_at) * 1000000)::bigint as sort_key, is_match, examined
      from p
     order by examined`;
  return isIndexed ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}
