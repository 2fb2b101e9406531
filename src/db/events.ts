import type { LikelyCause } from '../domain/likely-causes.ts';
import type { AppId, DeliveryId, PaymentId } from '../domain/ids.ts';
import type { PaymentComponent } from '../domain/events.ts';
import { detailsOf, joined } from './event-details.ts';
import type { EventFacts } from './event-details.ts';
import { isErased } from './erased-identifiers.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

/** How many rows of each fact were inserted. */
export interface AppendedFacts {
  readonly event: number;
  readonly payment: number;
  /** What a stored event states about the parts of its payment. */
  readonly components: number;
  readonly adjustment: number;
  readonly users: number;
  readonly userKeys: number;
  readonly userLinks: number;
  readonly aliases: number;
  readonly codes: number;
  readonly transfers: number;
}

/** The result of recording an event's facts. */
export interface RecordedFacts {
  /** Whether another delivery reported the event before. */
  readonly isDuplicate: boolean;
  /** The event's payment. Null if it has none, or if the facts were stored before. */
  readonly paymentId: PaymentId | null;
  /** Whether a hash is of an erased identifier: nothing was recorded. Replace the identifiers and record the facts again. */
  readonly namesErased: boolean;
}

/** The keyed hashes of the identifiers in an event. */
export interface IdentifierHashes {
  readonly users: readonly Buffer[];
  readonly keys: readonly Buffer[];
}

/** A condition of SQL: whether a user id or a key is of an erased person. */
function namesErased(sql: Sql, appId: AppId, { users, keys }: IdentifierHashes): Fragment {
  const ofUsers = users.length === 0 ? sql.fragment`false` : isErased(sql, appId, users, ['user']);
  const ofKeys = keys.length === 0 ? sql.fragment`false` : isErased(sql, appId, keys, ['key']);
  return sql.fragment`(${ofUsers} or ${ofKeys})`;
}

/**
 * Commits all facts of an event in one statement: the event, its payment or adjustment, the users who may have paid,
 * aliases of payments. The statement consists of the parts that this event has. The same delivery may be recorded again.
 * Records nothing if one of the hashes, those of the identifiers in the event, is of an erased person.
 */
export async function recordEventFacts(
  sql: Sql,
  facts: EventFacts,
  hashes: IdentifierHashes = { users: [], keys: [] },
): Promise<RecordedFacts> {
  const { payment, adjustment } = facts.event;
  const cause = firstCause(facts, facts.isReconciled === true ? 'missing_user_id' : 'processing');
  const evaluation =
    facts.isReconciled === true
      ? sql.fragment`now(), ${cause}::text`
      : sql.fragment`null::timestamptz, null::text`;
  const parts = detailsOf(sql, facts).filter(({ count }) => count > 0);
  const row = await sql.one<{ deliveryId: DeliveryId | null; paymentId: PaymentId | null }>`
    with erased as materialized (select ${namesErased(sql, facts.appId, hashes)} as is_named),
    new_event as (${insertEvent(sql, facts, sql.fragment`${cause}::text`, sql.fragment`where not (select is_named from erased)`)}),
    event as (select id, delivery_id from new_event)
    ${
      payment === null
        ? sql.fragment``
        : sql.fragment`, payment as (${insertPayment(sql, facts, sql.fragment`event`, evaluation)})`
    }
    ${
      adjustment === null
        ? sql.fragment``
        : sql.fragment`, adjustment as (${insertAdjustment(sql, facts, sql.fragment`event`)}), replaced as (${clearReplaced(sql, facts)})`
    }
    ${joined(sql, parts)}
    select reporter.delivery_id,
           ${payment === null ? sql.fragment`null` : sql.fragment`(select id from payment)`} as payment_id
      from (${selectReporter(sql, facts)} and not (select is_named from erased)
            union all select null from erased where is_named) reporter`;
  if (row.deliveryId === null) return { isDuplicate: false, paymentId: null, namesErased: true };
  return {
    isDuplicate: row.deliveryId !== facts.deliveryId,
    paymentId: row.paymentId,
    namesErased: false,
  };
}

/**
 * Appends the facts of an event that are missing, also where the event itself is stored already, and returns how many
 * rows are new. Returns null when another delivery reported the event. Stored values are not changed; only empty
 * columns of the event are filled. A new payment is stored as evaluated: it did not just arrive, so only the rules of a
 * later evaluation attribute it.
 */
export async function appendEventFacts(sql: Sql, facts: EventFacts): Promise<AppendedFacts | null> {
  // The new payment counts as evaluated once, with the cause of a payment without a known user.
  const cause = firstCause(facts, 'missing_user_id');
  const samePayment = paymentOf(sql, facts);
  // A further event of a stored payment has no cause of its own.
  const eventCause = sql.fragment`case when not exists (select from payments p where ${samePayment}) then ${cause} end`;
  const { deliveryId, appended } = await sql.one<{ deliveryId: DeliveryId; appended: AppendedFacts }>`
    with new_event as (${insertEvent(sql, facts, sql.fragment`(${eventCause})::text`)}),
    event as (
      -- Facts are inserted by one statement, so a stored event with a payment reference has its payment or adjustment.
      select id, delivery_id, true as may_add_money from new_event
      union all
      select id, delivery_id, payment_ref is null from events where delivery_id = ${facts.deliveryId}
    ),
    filled as (${fillEvent(sql, facts, eventCause)}),
    components as (${fillComponents(sql, facts)}),
    money_event as (select id from event where may_add_money),
    new_payment as (${insertPayment(
      sql,
      facts,
      sql.fragment`(select id from money_event where not exists (select from payments p where ${samePayment})) e`,
      sql.fragment`now(), ${cause}::text`,
    )}),
    payment as (
      select id from new_payment
      union all
      select p.id from payments p where ${facts.event.payment !== null}::boolean and ${samePayment} and exists (select from event)
    ),
    adjustment as (${insertAdjustment(sql, facts, sql.fragment`money_event`)}),
    replaced as (${clearReplaced(sql, facts)})
    ${joined(sql, detailsOf(sql, facts))},
    counts as (
      select jsonb_build_object(
               'event', (select count(*) from new_event), 'payment', (select count(*) from new_payment where is_new),
               'components', (select count(*) from components),
               'adjustment', (select count(*) from adjustment), 'users', (select count(*) from users),
               'userKeys', (select count(*) from user_keys), 'userLinks', (select count(*) from links),
               'aliases', (select count(*) from aliases), 'codes', (select count(*) from codes) + (select count(*) from subscription_codes), 'transfers', (select count(*) from transfers)) as appended
    )
    select * from (${selectReporter(sql, facts)}) r, counts`;
  return deliveryId === facts.deliveryId ? appended : null;
}

/**
 * The event's cause before its payment is evaluated: `unevaluated` for a production payment, null where none applies.
 */
function firstCause(
  { event, environment }: EventFacts,
  unevaluated: 'processing' | 'missing_user_id',
): LikelyCause | null {
  if (environment !== 'production') return null;
  if (event.payment !== null) return unevaluated;
  return event.priceUnknown ? 'price_unknown' : null;
}

/** The condition for a row `p` of payments to be the event's payment. */
function paymentOf(sql: Sql, { appId, environment, event: { payment } }: EventFacts): Fragment {
  return sql.fragment`
    p.app_id = ${appId} and p.environment = ${environment} and p.store = ${payment?.store ?? null} and p.ref = ${payment?.ref ?? null}`;
}

/** What an event's row states about money; the same for a payment and an adjustment. */
function moneyOf({ event: { payment, adjustment } }: EventFacts) {
  const money = payment ?? adjustment;
  return {
    store: money?.store ?? null,
    paymentRef: payment?.ref ?? adjustment?.paymentRef ?? null,
    currency: money?.currency ?? null,
    amountMinor: money?.amountMinor ?? null,
    usdCents: money?.usdCents ?? null,
  };
}

/** What an event's row states about the parts of its payment. */
function componentsOf({ event: { payment } }: EventFacts) {
  const { tax, storeFee } = payment?.components ?? {};
  return { tax: componentColumns(tax), storeFee: componentColumns(storeFee) };
}

function componentColumns(component: PaymentComponent | undefined) {
  return {
    minor: component !== undefined && 'minor' in component ? component.minor : null,
    ppm: component !== undefined && 'ppm' in component ? component.ppm : null,
  };
}

/** Inserts the event unless the app has it from this provider. Returns `id` and `delivery_id` of a new row. */
function insertEvent(
  sql: Sql,
  facts: EventFacts,
  likelyCause: Fragment,
  condition: Fragment = sql.fragment``,
): Fragment {
  const { event } = facts;
  const { store, paymentRef, currency, amountMinor, usdCents } = moneyOf(facts);
  const { tax, storeFee } = componentsOf(facts);
  return sql.fragment`
    insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                        product_id, customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause,
                        tax_minor, tax_ppm, store_fee_minor, store_fee_ppm)
    select ${facts.eventId}::text, ${facts.appId}::text, ${facts.deliveryId}::text, ${facts.source}::text,
           ${event.sourceEventId}::text, ${event.kind}::text, ${facts.environment}::text,
           ${instant(event.occurredAt)}::timestamptz, ${instant(facts.receivedAt)}::timestamptz, ${event.productId}::text,
           ${event.userIds[0] ?? null}::text, ${store}::text, ${paymentRef}::text, ${currency}::text, ${amountMinor}::bigint,
           ${usdCents}::bigint, ${likelyCause}, ${tax.minor}::bigint, ${tax.ppm}::int, ${storeFee.minor}::bigint, ${storeFee.ppm}::int
     ${condition}
    on conflict (app_id, source, source_event_id) do nothing
    returning id, delivery_id`;
}

/**
 * Fills empty columns of the delivery's stored event, if the event states money that was not stored. One that was ignored is stored as `other`:
 * it gets its kind.
 */
function fillEvent(sql: Sql, facts: EventFacts, likelyCause: Fragment): Fragment {
  const { event } = facts;
  const { store, paymentRef, currency, amountMinor, usdCents } = moneyOf(facts);
  return sql.fragment`
    update events e
       set store = coalesce(e.store, ${store}), payment_ref = ${paymentRef}, currency = coalesce(e.currency, ${currency}),
           amount_minor = coalesce(e.amount_minor, ${amountMinor}::bigint),
           amount_cents = coalesce(e.amount_cents, ${usdCents}::bigint),
           customer_user_id = coalesce(e.customer_user_id, ${event.userIds[0] ?? null}),
           kind = case when e.kind = 'other' then ${event.kind}::text else e.kind end,
           product_id = coalesce(e.product_id, ${event.productId}::text),
           likely_cause = ${likelyCause}, ${setComponents(sql, facts)}
     where ${(event.payment ?? event.adjustment) !== null}::boolean
       and e.delivery_id = ${facts.deliveryId} and e.payment_ref is null`;
}

/** Sets the columns of the components that a row `e` of events lacks. */
function setComponents(sql: Sql, facts: EventFacts): Fragment {
  const { tax, storeFee } = componentsOf(facts);
  return sql.fragment`
    tax_minor = case when e.tax_ppm is null then coalesce(e.tax_minor, ${tax.minor}::bigint) end,
    tax_ppm = case when e.tax_minor is null then coalesce(e.tax_ppm, ${tax.ppm}::int) end,
    store_fee_minor = case when e.store_fee_ppm is null then coalesce(e.store_fee_minor, ${storeFee.minor}::bigint) end,
    store_fee_ppm = case when e.store_fee_minor is null then coalesce(e.store_fee_ppm, ${storeFee.ppm}::int) end`;
}

/** Adds components to the delivery's stored event, whose payment an earlier version has read without them. */
function fillComponents(sql: Sql, facts: EventFacts): Fragment {
  const { tax, storeFee } = componentsOf(facts);
  return sql.fragment`
    update events e set ${setComponents(sql, facts)}
     where e.delivery_id = ${facts.deliveryId} and e.payment_ref is not null
       and (num_nonnulls(${tax.minor}::bigint, ${tax.ppm}::int) > 0 and num_nonnulls(e.tax_minor, e.tax_ppm) = 0
            or num_nonnulls(${storeFee.minor}::bigint, ${storeFee.ppm}::int) > 0 and num_nonnulls(e.store_fee_minor, e.store_fee_ppm) = 0)
    returning 1`;
}

/**
 * Inserts the payment of the event in `source`, or raises the version of a stored one: an evaluation that has not seen
 * this event must not be applied. `evaluation` gives the values of `evaluated_at` and `likely_cause`.
 */
function insertPayment(sql: Sql, facts: EventFacts, source: Fragment, evaluation: Fragment): Fragment {
  const { event, appId, environment } = facts;
  const { payment } = event;
  return sql.fragment`
    insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                          only_anonymous_user, evaluated_at, likely_cause)
    select ${newId('payment')}, ${appId}, ${environment}, ${payment?.store ?? null}, ${payment?.ref ?? null}, id,
           ${payment?.currency ?? null}, ${payment?.amountMinor ?? null}::bigint, ${payment?.usdCents ?? null}::bigint,
           ${instant(event.occurredAt)}, ${event.onlyAnonymousUserIds}, ${evaluation}
      from ${source} where ${payment !== null}::boolean
    on conflict (app_id, environment, store, ref) do update set version = payments.version + 1
    returning id, xmax = 0 as is_new`;
}

/**
 * Inserts the adjustment of the event in `source`, or replaces the state of a stored one: the highest rank decides, and of
 * equal ranks the latest fact. Facts of one rank and instant are ordered by their contents, so that any order of arrival ends
 * in the same state.
 */
function insertAdjustment(sql: Sql, facts: EventFacts, source: Fragment): Fragment {
  const { event, appId, environment } = facts;
  const { adjustment } = event;
  const isRepeated = sql.fragment`
    (excluded.rank, excluded.state, excluded.currency, excluded.amount_minor) = (old.rank, old.state, old.currency, old.amount_minor)`;
  return sql.fragment`
    insert into adjustments as old (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                                    amount_minor, usd_cents, made_at, occurred_at, stated_at, event_id)
    select ${newId('adjustment')}, ${appId}, ${environment}, ${adjustment?.store ?? null}, ${adjustment?.ref ?? null},
           ${adjustment?.paymentRef ?? null}, ${adjustment?.kind ?? null}, ${adjustment?.state ?? null},
           ${adjustment?.rank ?? null}::int, ${adjustment?.reversesAll ?? false}::boolean, ${adjustment?.currency ?? null},
           ${adjustment?.amountMinor ?? null}::bigint, ${adjustment?.usdCents ?? null}::bigint,
           ${adjustment?.madeAt == null ? null : instant(adjustment.madeAt)}::timestamptz,
           ${instant(event.occurredAt)}, ${instant(event.occurredAt)}, id
      from ${source} where ${adjustment !== null}::boolean
    on conflict (app_id, environment, store, ref) do update
      set state = excluded.state, rank = excluded.rank, currency = excluded.currency, amount_minor = excluded.amount_minor,
          stated_at = excluded.stated_at, made_at = coalesce(old.made_at, excluded.made_at),
          -- A repeated report of a state is later than the states before it, but does not move its time.
          usd_cents = case when ${isRepeated} then old.usd_cents else excluded.usd_cents end,
          occurred_at = case when ${isRepeated} then old.occurred_at else excluded.occurred_at end,
          event_id = case when ${isRepeated} then old.event_id else excluded.event_id end
      where (excluded.rank, excluded.stated_at, excluded.state = 'reversed', excluded.amount_minor)
          > (old.rank, old.stated_at, old.state = 'reversed', old.amount_minor)
    returning 1`;
}

/** Removes the cause of an event that stated the adjustment before: it no longer waits for a rate. The evaluation that follows looks again. */
function clearReplaced(sql: Sql, { event: { adjustment }, appId, environment }: EventFacts): Fragment {
  return sql.fragment`
    update events e set likely_cause = null
      from adjustments old
     where old.app_id = ${appId} and old.environment = ${environment} and old.store = ${adjustment?.store ?? null}
       and old.ref = ${adjustment?.ref ?? null} and e.id = old.event_id and e.likely_cause = 'missing_exchange_rate'
       and exists (select from adjustment)`;
}

/**
 * Selects the delivery that reported the event: this one, or the earlier one. No row when another statement has just
 * inserted the event: `sql.one` then sends the statement again.
 */
function selectReporter(sql: Sql, { appId, source, event }: EventFacts): Fragment {
  return sql.fragment`
    select delivery_id from event
    union
    select delivery_id from events
     where app_id = ${appId} and source = ${source} and source_event_id = ${event.sourceEventId}
       and not exists (select from new_event)`;
}
