import type { Environment, EventKind } from '../domain/events.ts';
import type { AppId, EventId } from '../domain/ids.ts';
import type { ProcessingStatus } from '../domain/delivery.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A request that a self-test is about to send, identified by its bytes. */
export interface Announcement {
  readonly appId: AppId;
  readonly provider: string;
  readonly bodySha256: Buffer;
}

/**
 * Announces a request before it is sent. From then on the database marks every delivery with these bytes as a sandbox
 * test, whatever its sender and contents.
 */
export async function announceSelfTest(
  sql: Sql,
  { appId, provider, bodySha256 }: Announcement,
): Promise<void> {
  await sql`
    insert into self_test_requests (app_id, provider, body_sha256) values (${appId}, ${provider}, ${bodySha256})
    on conflict do nothing`;
}

/** Whether an announced request arrived here unchanged and was refused. */
export async function wasRefusedHere(
  sql: Sql,
  { appId, provider, bodySha256 }: Announcement,
): Promise<boolean> {
  const row = await sql.maybe<{ refused: boolean }>`
    select refused_at is not null as refused from self_test_requests
     where app_id = ${appId} and provider = ${provider} and body_sha256 = ${bodySha256}`;
  return row?.refused ?? false;
}

/** The recorded event of a self-test. */
export interface SelfTestEvent {
  readonly processingStatus: ProcessingStatus;
  readonly lastError: string | null;
  readonly isSelfTest: boolean;
  readonly kind: EventKind;
  readonly environment: Environment;
  readonly customerUserId: string | null;
  readonly currency: string | null;
  readonly amountMinor: number | null;
  /** Number of sandbox payments with its reference that name its user. */
  readonly payments: number;
}

/** Returns the events that were recorded under the id of a self-test's event. There is at most one. */
export async function findSelfTestEvents(
  sql: Sql,
  appId: AppId,
  provider: string,
  sourceEventId: string,
): Promise<SelfTestEvent[]> {
  return await sql<SelfTestEvent>`
    select d.processing_status, d.last_error, d.is_self_test, e.kind,
           e.environment, e.customer_user_id, e.currency, e.amount_minor,
           (select count(*)::int from payments p
              join payment_users u on u.payment_id = p.id and u.customer_user_id = e.customer_user_id
             where p.app_id = e.app_id and p.environment = 'sandbox' and p.store = e.store and p.ref = e.payment_ref
               and p.amount_minor = e.amount_minor) as payments
      from events e join deliveries d on d.id = e.delivery_id
     where e.app_id = ${appId} and e.source = ${provider} and e.source_event_id = ${sourceEventId}`;
}

/** Returns the state of a delivery by the event id in its response. Undefined for an unknown id. */
export async function findDeliveryState(
  sql: Sql,
  appId: AppId,
  eventId: EventId,
): Promise<{ readonly isDone: boolean; readonly lastError: string | null } | undefined> {
  return await sql.maybe<{ isDone: boolean; lastError: string | null }>`
    select completed_at is not null as is_done, last_error from deliveries
     where event_id = ${eventId} and app_id = ${appId}`;
}

/** Everything recorded for these events that is money or could become money. All zero after a correct self-test. */
export interface MoneyLeft {
  readonly commissions: number;
  readonly revenueEntries: number;
  /** Production payments with the reference of one of the events. */
  readonly earningPayments: number;
  /** Events outside the sandbox. */
  readonly earningEvents: number;
}

/**
 * Counts the money in everything that was recorded under these source event ids. The lookups run row by row (`offset
 * 0`): a join would read all commissions.
 */
export async function findMoneyLeft(
  sql: Sql,
  appId: AppId,
  provider: string,
  sourceEventIds: readonly string[],
): Promise<MoneyLeft> {
  return await sql.one<MoneyLeft>`
    with recorded as materialized (
      select id, environment, store, payment_ref from events
       where app_id = ${appId} and source = ${provider} and source_event_id = any(${sourceEventIds}::text[])
    ), paid as materialized (
      select p.id, p.environment from recorded join payments p
          on p.app_id = ${appId} and p.environment in ('production', 'sandbox') and p.store = recorded.store and p.ref = recorded.payment_ref
    )
    select (select count(*)::int
              from (select c.id from recorded cross join lateral (select id from commissions where event_id = recorded.id offset 0) c
                    union
                    select c.id from paid cross join lateral (select id from commissions where payment_id = paid.id offset 0) c) x)
             as commissions,
           (select count(*)::int
              from paid cross join lateral (select 1 from revenue_entries where payment_id = paid.id offset 0) r)
             as revenue_entries,
           (select count(*)::int from paid where environment <> 'sandbox') as earning_payments,
           (select count(*)::int from recorded where environment <> 'sandbox') as earning_events`;
}

/** The latest deliveries that a provider itself sent. */
export interface RealDeliveries {
  readonly acceptedAt: number | null;
  readonly acceptedStatus: ProcessingStatus | null;
  readonly acceptedError: string | null;
  readonly refusedAt: number | null;
  readonly refusedReason: string | null;
  /** Number of refused requests in that hour. */
  readonly refusedCount: number | null;
}

/** Returns the latest accepted and the latest refused delivery of the provider, without self-tests. */
export async function findRealDeliveries(sql: Sql, appId: AppId, provider: string): Promise<RealDeliveries> {
  return await sql.one<RealDeliveries>`
    select a.received_at as accepted_at, a.processing_status as accepted_status, a.last_error as accepted_error,
           r.received_at as refused_at, r.last_error as refused_reason, r.refused_count
      from (select 1) one
      left join lateral (
        select received_at, processing_status, last_error from deliveries
         where app_id = ${appId} and provider = ${provider} and signature_valid and not is_self_test
           and proof->>'kind' is distinct from 'reconciliation'
         order by received_at desc nulls last limit 1) a on true
      left join lateral (
        select received_at, last_error, refused_count from deliveries
         where app_id = ${appId} and provider = ${provider} and refused_hour is not null
         order by refused_hour desc limit 1) r on true`;
}

/** Keeps the result of an app's latest self-test: when it passed, or null if it found something to fix. */
export async function keepSelfTestResult(sql: Sql, appId: AppId, passedAt: number | null): Promise<void> {
  await sql`update apps set self_test_passed_at = ${passedAt === null ? null : instant(passedAt)} where id = ${appId}`;
}

/** Recent activity of an app. */
export interface AppActivity {
  readonly hasActiveLink: boolean;
  readonly clicks: number;
  readonly installs: number;
  readonly identified: number;
}

/**
 * Returns whether an app has an active link, and its counts since `since`, from at most four rows per day and the tail.
 */
export async function readAppActivity(sql: Sql, appId: AppId, since: number): Promise<AppActivity> {
  return await sql.one<AppActivity>`
    select (select true from links where app_id = ${appId} and active order by created_at, id limit 1) is not null
             as has_active_link,
           coalesce(sum(clicks), 0)::bigint as clicks, coalesce(sum(installs), 0)::bigint as installs,
           coalesce(sum(identified), 0)::bigint as identified
      from (select clicks, installs, identified from rollup_blocks
             where app_id = ${appId} and scope = 'app' and scope_id = ${appId}
               and block_at >= rollup_block(${instant(since)}::timestamptz)
            union all
            select clicks, installs, identified from rollup_tail
             where app_id = ${appId} and scope = 'app' and bucket_at >= rollup_block(${instant(since)}::timestamptz)) x`;
}

/** A currency of an app's payments, and the latest day with a rate. */
export interface CurrencyInUse {
  readonly currency: string;
  /** Null without any rate. */
  readonly rateAt: number | null;
}

/** Number of an app's latest events that are searched for currencies. */
const CURRENCY_LIMIT = 500;

/**
 * Returns the currencies of an app's latest events that need conversion: not US dollars, without dollars of the
 * provider.
 */
export async function findCurrenciesInUse(sql: Sql, appId: AppId): Promise<CurrencyInUse[]> {
  return await sql<CurrencyInUse>`
    select c.currency, (select r.day from exchange_rates r where r.currency = c.currency order by r.day desc limit 1)
                         ::timestamp at time zone 'UTC' as rate_at
      from (select distinct currency
              from (select currency, amount_cents, fx_source from events
                     where app_id = ${appId} and customer_user_id is not null and kind <> 'test'
                     order by id desc limit ${CURRENCY_LIMIT}) latest
             where currency <> 'USD' and (amount_cents is null or fx_source is not null)) c
     order by c.currency`;
}
