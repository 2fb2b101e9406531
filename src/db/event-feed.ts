import type { LikelyCause } from '../domain/likely-causes.ts';
import { DEFAULT_LIMITS } from '../domain/evaluation.ts';
import { WAITING_CAUSES } from '../domain/event-outcome.ts';
import type { EventOutcome } from '../domain/event-outcome.ts';
import { ADJUSTMENT_KINDS } from '../domain/events.ts';
import type { Environment, EventKind } from '../domain/events.ts';
import type { AffiliateId, AppId, DeliveryId, EventId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

export interface FeedEvent {
  readonly eventId: EventId;
  readonly deliveryId: DeliveryId;
  readonly source: ProviderName;
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly environment: Environment;
  readonly occurredAt: number;
  readonly receivedAt: number;
  readonly productId: string | null;
  readonly customerUserId: string | null;
  readonly currency: string | null;
  readonly amountMinor: number | null;
  readonly amountCents: number | null;
  readonly outcome: EventOutcome;
  readonly likelyCause: LikelyCause | null;
  /** When the payment is decided, about, epoch ms. Null if it was, and if its cause says what it waits for. */
  readonly waitsUntil: number | null;
  /** The sum of the commissions that the event wrote. Null if it wrote none. */
  readonly commissionCents: number | null;
  /** Whether the payment that the event reports has a commission. */
  readonly hasEarned: boolean;
  /** The affiliate of the payment. */
  readonly affiliateId: AffiliateId | null;
  readonly affiliateName: string | null;
}

/** The filters of the feed. Null selects all events. The event was received in `from ≤ t < to`. */
export interface FeedFilter {
  readonly kind: EventKind | null;
  readonly source: ProviderName | null;
  readonly environment: Environment | null;
  readonly outcome: EventOutcome | null;
  readonly customerUserId: string | null;
  readonly affiliateId: AffiliateId | null;
  readonly from: number | null;
  readonly to: number | null;
}

/** The filters that an index selects in the order of the list. The page examines the rows of the index for the others. */
const INDEXED: ReadonlySet<keyof FeedFilter> = new Set(['customerUserId', 'from', 'to']);

/**
 * When the payment of an event `e` without a commission is decided, about: it is marked for another evaluation, because another event may
 * name its user until then. Null if it was decided, and if its cause says what it waits for. Reads one payment.
 */
export function waitsUntil(sql: Sql): Fragment {
  return sql.fragment`
    case when e.environment = 'production' and e.likely_cause <> all(${[...WAITING_CAUSES]}::text[]) then (
      select epoch_ms(e.received_at) + ${DEFAULT_LIMITS.keyGraceMs}::int from payments p
       where p.app_id = e.app_id and p.environment = e.environment and p.store = e.store and p.ref = e.payment_ref
         and p.binding_id is null and p.recheck_since is not null) end`;
}

/** What an event `e` brought about: by the commissions that it wrote, else by its cause. */
function outcomeOf(sql: Sql): Fragment {
  return sql.fragment`
    case when e.environment = 'sandbox' then 'sandbox'
         when e.likely_cause = any(${[...WAITING_CAUSES]}::text[]) or ${waitsUntil(sql)} is not null then 'waiting'
         else coalesce(
           (select case when bool_or(c.kind = 'earning') then 'earned' else 'reversed' end
              from commissions c where c.event_id = e.id having count(*) > 0),
           case when e.kind = any(${[...ADJUSTMENT_KINDS]}::text[]) and e.payment_ref is not null
                 and (select true from same_payment(e.app_id, e.environment, e.store, array[e.payment_ref]) limit 1) is null
                then 'waiting' else 'nothing' end) end`;
}

/** The affiliate of the commissions that an event `e` wrote, else the one that its payment is attributed to. */
function affiliateOf(sql: Sql): Fragment {
  return sql.fragment`
    coalesce(
      (select c.affiliate_id::text from commissions c where c.event_id = e.id limit 1),
      (select a.affiliate_id::text
         from (select x.binding_id, x.attribution_id from payments x
                where x.app_id = e.app_id and x.environment = e.environment and x.store = e.store and x.ref = e.payment_ref
                offset 0) p
        cross join lateral (select x.attribution_id from bindings x where x.id = p.binding_id offset 0) b
        cross join lateral (select x.affiliate_id from attributions x where x.id = coalesce(p.attribution_id, b.attribution_id) offset 0) a))`;
}

function conditions(sql: Sql, filter: FeedFilter): Record<keyof FeedFilter, Fragment> {
  return {
    kind: sql.fragment`and e.kind = ${filter.kind}`,
    source: sql.fragment`and e.source = ${filter.source}`,
    environment: sql.fragment`and e.environment = ${filter.environment}`,
    outcome: sql.fragment`and (${outcomeOf(sql)}) = ${filter.outcome}`,
    customerUserId: sql.fragment`and e.customer_user_id = ${filter.customerUserId}`,
    affiliateId: sql.fragment`and ${affiliateOf(sql)} = ${filter.affiliateId}`,
    from: sql.fragment`and e.received_at >= ${instant(filter.from ?? 0)}`,
    to: sql.fragment`and e.received_at < ${instant(filter.to ?? 0)}`,
  };
}

/**
 * Returns a page of an app's events with their outcomes, the last received first. An index selects the user and the range.
 * A page with any other filter examines at most `examines` rows of it and may have fewer than `limit`.
 */
export async function listEvents(
  sql: Sql,
  appId: AppId,
  filter: FeedFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<FeedEvent, number>> {
  const all = conditions(sql, filter);
  const given = (Object.keys(all) as (keyof FeedFilter)[]).filter((name) => filter[name] !== null);
  const joined = (names: readonly (keyof FeedFilter)[]) =>
    names.reduce((text, name) => sql.fragment`${text} ${all[name]}`, sql.fragment``);
  const others = given.filter((name) => !INDEXED.has(name));
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (e.received_at, e.id) < (${instant(after.sortKey)}, ${after.id})`;
  const rows = await sql<FeedEvent & Position<number> & Examined>`
    with walked as (
      select e.*, row_number() over (order by e.received_at desc, e.id desc) as examined
        from events e
       where e.app_id = ${appId} ${joined(given.filter((name) => INDEXED.has(name)))} ${from}
       order by e.received_at desc, e.id desc limit ${others.length === 0 ? limit + 1 : examines}
    ), e as (
      ${matchesOf(sql, sql.fragment`walked e`, sql.fragment`true ${joined(others)}`, sql.fragment`received_at desc, id desc`, { limit, examines })}
    ), found as materialized (
      select e.*, ${outcomeOf(sql)} as outcome, ${waitsUntil(sql)} as waits_until, ${affiliateOf(sql)} as affiliate_id,
             (select sum(c.amount_cents)::bigint from commissions c where c.event_id = e.id) as commission_cents,
             (select true from payments p
               where p.app_id = e.app_id and p.environment = e.environment and p.store = e.store and p.ref = e.payment_ref
                 and p.earned_cents > 0) is not null as has_earned
        from e
    )
    select id, id as event_id, delivery_id, waits_until, source, source_event_id, kind, environment, occurred_at, received_at, product_id,
           customer_user_id, currency, amount_minor, amount_cents, outcome, likely_cause, commission_cents, has_earned,
           affiliate_id, (select a.name from affiliates a where a.id = found.affiliate_id) as affiliate_name,
           epoch_ms(received_at) as sort_key, is_match, examined
      from found
     order by examined`;
  return others.length === 0 ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/** What a search shows of an event. */
export type FoundEvent = Pick<
  FeedEvent,
  | 'eventId'
  | 'source'
  | 'sourceEventId'
  | 'kind'
  | 'environment'
  | 'occurredAt'
  | 'customerUserId'
  | 'currency'
  | 'amountMinor'
>;

/**
 * Returns events whose id at one of the providers `sources`, transaction or user is a text, the latest first, at most `limit`. Of a transaction
 * or user with more it returns the last received of the user, and any of the transaction.
 */
export async function searchEvents(
  sql: Sql,
  appId: AppId,
  sources: readonly ProviderName[],
  text: string,
  limit: number,
): Promise<FoundEvent[]> {
  return await sql<FoundEvent>`
    with found as materialized (
      select id from events
       where app_id = ${appId} and source = any(${[...sources]}::text[]) and source_event_id = ${text}
      union
      (select id from events where app_id = ${appId} and payment_ref = ${text} limit ${limit})
      union
      -- Stripe's invoice, payment intent and charge are names of one payment: of its events, each reports one. A charge names its intent, and
      -- an intent its invoice.
      (select x.id
         from payment_aliases a
         left join payment_aliases b
           on b.app_id = a.app_id and b.environment = a.environment and b.store = a.store and b.alias_ref = a.payment_ref
         join events x
           on x.app_id = a.app_id and x.payment_ref = any(array[a.payment_ref, b.payment_ref]) and x.environment = a.environment
        where a.app_id = ${appId} and a.environment in ('production', 'sandbox') and a.store = 'stripe' and a.alias_ref = ${text}
        limit ${limit})
      union
      (select x.id
         from payment_aliases a
         join events x on x.app_id = a.app_id and x.payment_ref = a.alias_ref and x.environment = a.environment
        where a.app_id = ${appId} and a.environment in ('production', 'sandbox') and a.store = 'stripe' and a.payment_ref = ${text}
        limit ${limit})
      union
      (select id from events where app_id = ${appId} and customer_user_id = ${text}
        order by received_at desc, id desc limit ${limit})
    )
    select e.id as event_id, e.source, e.source_event_id, e.kind, e.environment, e.occurred_at, e.customer_user_id, e.currency,
           e.amount_minor
      from found cross join lateral (select * from events x where x.id = found.id offset 0) e
     order by e.occurred_at desc, e.id desc limit ${limit}`;
}
