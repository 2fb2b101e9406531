import type { AppId, EventId, PaymentId } from '../domain/ids.ts';
import type { Environment } from '../domain/events.ts';
import { RATE_MAX_AGE_DAYS } from '../domain/exchange-rate.ts';
import { CUSTOMER_KEY } from '../domain/payment-snapshot.ts';
import type { PaymentSnapshot } from '../domain/payment-snapshot.ts';
import { standingOf } from '../domain/payment-rows.ts';
import type { PaymentRow, RowStanding } from '../domain/payment-rows.ts';
import { MOST_SKEW_MS } from '../domain/time.ts';
import { componentsOf, policyOf, ruleOf } from './policy-snapshot.ts';
import { codeOwnersOf, keysToBindOf, withNewIds } from './code-owners.ts';
import { isRunningTotal } from './running-totals.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/** Prefixes that sign-in services add to an id: `auth0|4711`, `firebase:4711`. */
const USER_ID_PREFIX = String.raw`^\s*[A-Za-z][\w.-]*[|:](?=\S)`;

/** The condition for an identity `i` to differ from `userId` at most in case, surrounding spaces or a prefix. */
export function isSimilarUserId(sql: Statements, userId: Fragment): Fragment {
  return sql.fragment`
    lower(btrim(i.customer_user_id) collate "C") = any(array[
      lower(btrim(${userId}) collate "C"),
      lower(btrim(regexp_replace(${userId}, ${USER_ID_PREFIX}, '')) collate "C")])`;
}

/** A snapshot with what is needed to apply its evaluation. */
export interface StoredPayment extends PaymentSnapshot, Pick<RowStanding, 'isPart'> {
  readonly paymentId: PaymentId;
  readonly appId: AppId;
  readonly eventId: EventId;
  readonly version: number;
  readonly revenueEntries: number;
  /** Rows of the same payment under other references. */
  readonly aliasIds: readonly PaymentId[];
  /** The sum of the versions of those rows. */
  readonly aliasVersions: number;
}

/** Selects one row, or payments by id or by their references at the store, with all rows of the same payments. */
export type PaymentSelector =
  | { readonly rowId: PaymentId }
  | { readonly paymentIds: readonly PaymentId[] }
  | {
      readonly appId: AppId;
      readonly environment: Environment;
      readonly store: string;
      readonly refs: readonly string[];
    };

/** What the ledger and other references add to a payment: nothing, for a payment that has neither. */
const NOTHING_ELSE = {
  reversedCents: 0,
  correctedCents: 0,
  revenueCents: null,
  revenueEntries: 0,
  earning: null,
  aliasIds: [],
  aliasVersions: 0,
  isPart: false,
  countedElsewhere: false,
  duplicateOf: null,
  inherited: null,
  adjustments: [],
} as const satisfies Partial<StoredPayment>;

/**
 * Reads a payment that is not attributed and has neither another reference, nor a refund or dispute, as nearly every payment
 * is when it arrives. Returns undefined for any other payment: `loadPayments` reads it. As with that one, call it after the
 * newest fact was committed. Its conditions are checked in the same snapshot. Commissions and revenue require a binding, so
 * this payment has none.
 */
export async function loadCommonPayment(sql: Sql, paymentId: PaymentId): Promise<StoredPayment | undefined> {
  const row = await sql.maybe<Omit<StoredPayment, keyof typeof NOTHING_ELSE>>`
    select ${paymentColumns(sql, { rowIds: sql.fragment`array[p.id::text]`, refs: sql.fragment`array[p.ref]` })}
      from payments p
     cross join lateral (select * from events x where x.id = p.event_id offset 0) e
     cross join lateral (select * from apps x where x.id = p.app_id offset 0) app
     where p.id = ${paymentId} and p.binding_id is null
       and (select true from payment_aliases l
             where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.alias_ref = p.ref limit 1) is null
       and (select true from payment_aliases l
             where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.payment_ref = p.ref limit 1) is null
       and (select true from adjustments a
             where a.app_id = p.app_id and a.environment = p.environment and a.store = p.store and a.payment_ref = p.ref limit 1) is null`;
  return row && withNewIds({ ...row, ...NOTHING_ELSE });
}

/** A row of the payment as it is read, with its version. */
type VersionedRow = PaymentRow & { readonly version: number };

type LoadedPayment = Omit<StoredPayment, keyof RowStanding | 'aliasIds' | 'aliasVersions'> & {
  readonly rows: readonly VersionedRow[];
};

/**
 * Reads payments with all known facts, in one statement. Call it after the newest fact was committed: it then sees
 * every fact that was committed before. Returns all rows of the same payments, parts after the row that counts instead, so that
 * a caller that evaluates them in this order ends with a part that is corrected. The parts of the statement:
 *
 * - `paymentColumns`: the payment's own columns and the users whom it may belong to;
 * - its revenue entries (`r`) and `earning` so far;
 * - `names`: all references of the payment, and with any of them `adjustments`, its refunds and disputes;
 * - `same`: its rows, one per reference that reported money.
 */
export async function loadPayments(sql: Statements, selector: PaymentSelector): Promise<StoredPayment[]> {
  const which =
    'rowId' in selector
      ? sql.fragment`p.id = ${selector.rowId}`
      : 'paymentIds' in selector
        ? sql.fragment`p.id = any(array(
          select s.id
            from unnest(${[...selector.paymentIds]}::text[]) i
           cross join lateral (select * from payments x where x.id = i offset 0) n
           cross join lateral same_payment(n.app_id, n.environment, n.store, array[n.ref]) s))`
        : sql.fragment`p.id = any(array(
          select id from same_payment(${selector.appId}, ${selector.environment}, ${selector.store},
                                      ${[...selector.refs]}::text[])))`;
  const loaded = await sql<LoadedPayment>`
    select ${paymentColumns(sql, { rowIds: sql.fragment`same.ids`, refs: sql.fragment`names.refs` })}, p.reversed_cents, p.corrected_cents,
           r.net as revenue_cents, r.entries as revenue_entries, own.earning, same.rows,
           coalesce((
             select json_agg(json_build_object(
                      'adjustmentId', a.id, 'ref', a.ref, 'paymentRef', a.payment_ref, 'isTotal', ${isRunningTotal(sql, sql.fragment`a`)},
                      'madeAt', epoch_ms(a.made_at), 'statedAt', epoch_ms(a.stated_at),
                      'referenceRate', case when a.currency <> p.currency and stated.usd_cents is null then ${rateOnPaymentDay(sql, sql.fragment`a.currency`)} end, 'kind', a.kind, 'state', a.state, 'reversesAll', a.reverses_all, 'currency', a.currency,
                      'amountMinor', a.amount_minor, 'usdCents', stated.usd_cents, 'occurredAt', epoch_ms(a.occurred_at),
                      'eventId', a.event_id,
                      'bookedMinor', case when a.booked_payment_id = p.id then a.booked_minor else 0 end))
               from unnest(names.refs) n (ref)
              cross join lateral (
                select * from adjustments x
                 where x.app_id = p.app_id and x.environment = p.environment and x.store = p.store
                   and x.payment_ref = n.ref collate "default" offset 0) a
              cross join lateral (
                -- Another row may have converted it at the rate of its own day.
                select case when a.booked_payment_id <> p.id
                            then (select x.amount_cents from events x where x.id = a.event_id) else a.usd_cents end as usd_cents) stated), '[]') as adjustments
      from payments p
     cross join lateral (select * from events x where x.id = p.event_id offset 0) e
     cross join lateral (select * from apps x where x.id = p.app_id offset 0) app
     cross join lateral (select sum(v.amount_cents)::bigint as net, count(*)::int as entries
                           from revenue_entries v where v.payment_id = p.id) r
     cross join lateral (
       select json_agg(json_build_object('commissionId', c.id, 'amountCents', c.amount_cents,
                                           'policyBaseCents', case when c.policy_version_id is not null then c.base_cents end))
                filter (where c.kind = 'earning')->0 as earning
         from commissions c where c.payment_id = p.id) own
     cross join lateral (
       select array(select n.ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n) as refs offset 0) names
     cross join lateral (
       select array_agg(q.id::text) as ids,
              json_agg(json_build_object(
                'paymentId', q.id, 'version', q.version, 'currency', q.currency, 'amountMinor', q.amount_minor,
                'isDuplicate', q.duplicate_of is not null,
                'isRoot', (select true from payment_aliases l
                            where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store
                              and l.alias_ref = q.ref and l.payment_ref <> l.alias_ref limit 1) is null,
                'attribution', case when q.binding_id is not null then json_build_object(
                  'customerUserId', b.customer_user_id, 'binding', ${bindingObject(sql)}) end,
                'earning', (select json_build_object('commissionId', c.id, 'rateBps', c.rate_bps,
                                                      'rateSource', coalesce(c.rate_source, 'app'), 'rule', ${ruleOf(sql)})
                              from commissions c where c.payment_id = q.id and c.kind = 'earning' limit 1),
                'numbered', case when app.policies_from is not null and q.binding_id is not null then (
                  select json_build_object('subjectId', n.subject_id, 'number', n.number, 'firstPaidAt', epoch_ms(n.first_paid_at),
                                            'countsAs', n.counts_as)
                    from payment_numbers n where n.payment_id = q.id) end)) as rows
         from unnest(names.refs) n (ref)
        cross join lateral (
          select * from payments x
           where x.app_id = p.app_id and x.environment = p.environment and x.store = p.store and x.ref = n.ref collate "default" offset 0) q
         left join lateral (select * from bindings y where y.id = q.binding_id offset 0) b on true
         left join lateral (select * from attributions y where y.id = coalesce(q.attribution_id, b.attribution_id) offset 0) t on true
         left join lateral (select * from affiliates y where y.id = t.affiliate_id offset 0) f on true) same
     where ${which}
     order by p.id`;
  return loaded
    .map((one) => withNewIds(withStanding(one)))
    .toSorted((a, b) => Number(a.isPart) - Number(b.isPart));
}

function withStanding({ rows, ...payment }: LoadedPayment): StoredPayment {
  const own = rows.find((row) => row.paymentId === payment.paymentId);
  if (own === undefined) throw new Error(`payment ${payment.paymentId} is not among its own rows`);
  const others = rows.filter((row) => row !== own);
  return {
    ...payment,
    ...standingOf(own, rows),
    aliasIds: others.map(({ paymentId }) => paymentId),
    aliasVersions: others.reduce((sum, { version }) => sum + version, 0),
  };
}

/** The snapshot of a binding `b` with its attribution `t` and affiliate `f`. */
function bindingObject(sql: Statements): Fragment {
  return sql.fragment`
    json_build_object(
      'bindingId', b.id, 'boundAt', epoch_ms(b.created_at),
      -- A user who got purchases of one whom a founder gave to a creator belongs to that creator since then.
      'touchedAt', epoch_ms(case when t.match_method = 'manual' and b.counts_with is not null then t.created_at
                                 else least(t.touched_at, t.created_at) end), 'matchMethod', t.match_method, 'attributionId', t.id,
      'saidAt', case when t.match_method = 'manual' then epoch_ms(t.created_at) end,
      'reassignedTo', case when t.id <> b.attribution_id then t.id end,
      'affiliateId', f.id, 'linkId', t.link_id, 'affiliateStatus', f.status,
      'affiliateRateBps', f.default_commission_rate_bps, 'policy', ${policyOf(sql)})`;
}

/** When a payment `p` with its event `e` was made at the latest (`paidAtOf`). */
const paidAt = (sql: Statements): Fragment =>
  sql.fragment`least(p.occurred_at, e.received_at + interval '1 millisecond' * ${MOST_SKEW_MS}::int)`;

/** The rate of a currency on the day of a payment `p`, otherwise the latest of the seven days before. */
function rateOnPaymentDay(sql: Statements, currency: Fragment): Fragment {
  return sql.fragment`
    (select json_build_object('units', x.units::text, 'worthUsd', x.worth_usd::text, 'source', x.source || ' ' || x.day)
       from exchange_rates x
      where x.currency = ${currency} and x.day <= (p.occurred_at at time zone 'UTC')::date
        and x.day >= (p.occurred_at at time zone 'UTC')::date - ${RATE_MAX_AGE_DAYS}::int
      order by x.day desc limit 1)`;
}

/**
 * The columns of a snapshot that every payment has, for a payment `p` with its event `e` and its `app`. `candidates` are the
 * users whom the events of any row of the payment (`rowIds`) name or whom its provider keys lead to, and the keys that a code bound, with their bindings, those
 * of its own row first. `refs` are all references of the payment. Each look-up has one index.
 */
function paymentColumns(
  sql: Statements,
  { rowIds, refs }: { readonly rowIds: Fragment; readonly refs: Fragment },
): Fragment {
  return sql.fragment`
    p.id as payment_id, p.app_id, p.event_id, e.source, e.product_id, p.store, p.version, p.environment, p.currency, p.amount_minor, p.usd_cents,
    p.occurred_at, e.received_at, p.only_anonymous_user, p.evaluated_at, p.likely_cause, p.base_cents, p.binding_id,
    p.decided_binding_id,
    coalesce((
      select json_agg(json_build_object(
               'customerUserId', u.customer_user_id, 'via', u.via, 'identified', i.identified,
               'nearlyIdentified', b.id is null and not i.identified and exists (
                 select from identities i
                  where i.app_id = p.app_id and ${isSimilarUserId(sql, sql.fragment`u.customer_user_id`)}),
               'identifiedInTest', b.id is null and not i.identified and (
                 select true from test_identities y
                  where y.app_id = p.app_id and y.customer_user_id = u.customer_user_id limit 1) is not null,
               'binding', case when t.id is not null then ${bindingObject(sql)} end,
               'givenToNobodyAt', case when b.id is not null and t.id is null then (
                 select coalesce(max(epoch_ms(m.effective_from)), 0)
                   from bindings y join manual_attributions m on m.binding_id = y.id
                  where (y.id = b.id or b.key_source is not null
                                        and (y.id = b.counts_with or y.counts_with = coalesce(b.counts_with, b.id::text)))
                    and m.attribution_id is null and m.effective_from <= ${paidAt(sql)}
                    and (y.id = b.id or y.key_source is not null or is_only_user(y, m.created_at))) end)
             order by u.is_of_other, u.position, u.customer_user_id)
        from (select distinct on (x.customer_user_id) x.customer_user_id, x.is_of_other, x.position,
                     case x.distance when -1 then 'bound_key' when 0 then 'event' when 1 then 'key' else 'customer_key' end as via
                from (select y.customer_user_id, 0 as distance, y.payment_id <> p.id as is_of_other, y.position
                        from unnest(${rowIds}) i
                       cross join lateral (select * from payment_users x where x.payment_id = i offset 0) y
                      union all
                      select l.customer_user_id,
                             case when l.is_bound then -1 when k.user_key ~ ${CUSTOMER_KEY} then 2 else 1 end,
                             k.payment_id <> p.id, case when l.is_bound then 1000 - k.position else 1000 + k.position end
                        from unnest(${rowIds}) i
                       cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) k
                       cross join lateral (
                         select y.customer_user_id, false as is_bound from user_links y
                          where y.app_id = p.app_id and y.environment = p.environment and y.source = k.source
                            and y.user_key = k.user_key
                         union all
                         select y.customer_user_id, true from bindings y
                          where y.app_id = p.app_id and y.customer_user_id = k.user_key and y.key_source is not null offset 0) l
                      union all
                      -- A code has bound the payment alone, while its amount was unknown.
                      select y.customer_user_id, -1, false, 2000
                        from (select p.decided_binding_id as id where p.decided_binding_id is not null) d
                       cross join lateral (
                         select * from bindings x
                          where x.id = d.id and x.key_source is not null and x.customer_user_id = p.ref offset 0) y) x
               order by x.customer_user_id, x.distance, x.is_of_other, x.position) u
       cross join lateral (
         select (select true from identities y
                  where y.app_id = p.app_id and y.customer_user_id = u.customer_user_id limit 1) is not null as identified offset 0) i
        left join lateral (
          select * from bindings y where y.app_id = p.app_id and y.customer_user_id = u.customer_user_id offset 0) b on true
        left join lateral (
          -- A call of the function takes longer than the look-up.
          select * from attributions y
           where y.id = case when b.reassigned_at is null then b.attribution_id else attribution_at(b, ${paidAt(sql)}) end offset 0) t on true
        left join lateral (select * from affiliates y where y.id = t.affiliate_id offset 0) f on true), '[]') as candidates,
    json_build_object('commissionRateBps', app.commission_rate_bps, 'attributionWindowDays', app.attribution_window_days,
                       'holdPeriodDays', app.hold_period_days) as app,
    ${componentsOf(sql, refs)} as components, ${codeOwnersOf(sql, { rowIds, refs })} as code_owners,
    ${keysToBindOf(sql, { rowIds })} as keys_to_bind,
    ${rateOnPaymentDay(sql, sql.fragment`p.currency`)} as reference_rate,
    epoch_ms(now()) as now`;
}

/**
 * Returns a page of a user's payments that are not attributed yet, in the order of their ids: those that name the user
 * (`payment_users`), those with a provider's key that leads to the user, and those whose key the code of a purchase bound in place of
 * a user. Each part walks an index from `after`, so that a page costs the same wherever it begins.
 */
export async function findWaitingPayments(
  sql: Statements,
  appId: AppId,
  customerUserId: string,
  after: PaymentId | null,
  limit: number,
): Promise<PaymentId[]> {
  const waits = sql.fragment`
    cross join lateral (
      select from payments p
       where p.id = w.payment_id and p.binding_id is null and p.environment = 'production' offset 0) p`;
  const rows = await sql<{ id: PaymentId }>`
    select id from (
      (select w.payment_id as id from payment_users w ${waits}
        where w.app_id = ${appId} and w.customer_user_id = ${customerUserId} and w.payment_id > ${after ?? ''}
        order by w.payment_id limit ${limit})
      union
      (select k.payment_id from user_links l cross join lateral (
         select w.payment_id from payment_user_keys w ${waits}
          where w.app_id = l.app_id and w.user_key = l.user_key and w.source = l.source and w.payment_id > ${after ?? ''}
          order by w.payment_id limit ${limit}) k
        where l.app_id = ${appId} and l.customer_user_id = ${customerUserId} and l.environment = 'production')
      union
      (select k.payment_id from bindings b cross join lateral (
         select w.payment_id from payment_user_keys w ${waits}
          where w.app_id = b.app_id and w.user_key = b.customer_user_id and w.payment_id > ${after ?? ''}
          order by w.payment_id limit ${limit}) k
        where b.app_id = ${appId} and b.customer_user_id = ${customerUserId} and b.key_source is not null)
    ) u
     order by id limit ${limit}`;
  return rows.map((row) => row.id);
}

/**
 * Returns at most `limit` payments with one of a provider's keys that may wait for what an event stated of the key, a user or a code:
 * the marked ones, and before them those that received the key within a minute of the statement. A payment that received the key
 * and was evaluated while the other was being committed has no mark: neither statement saw the row of the other. A statement takes
 * less than half a minute.
 */
export async function findLinkedPayments(
  sql: Sql,
  appId: AppId,
  source: string,
  userKeys: readonly string[],
  limit: number,
): Promise<PaymentId[]> {
  const rows = await sql<{ id: PaymentId }>`
    select id from (
      select distinct p.id, p.recheck_since is not null as is_marked
        from payment_user_keys k
        join payments p on p.id = k.payment_id
       cross join lateral (
         select y.linked_at as stated_at from user_links y
          where y.app_id = k.app_id and y.environment = p.environment and y.source = k.source and y.user_key = k.user_key
         union all
         select y.created_at from subscription_codes y
          where y.app_id = k.app_id and y.environment = p.environment and y.source = k.source and y.user_key = k.user_key offset 0) l
       where k.app_id = ${appId} and k.source = ${source} and k.user_key = any(${[...userKeys]}::text[])
         and p.binding_id is null and p.environment = 'production'
         and (p.recheck_since is not null
              or k.added_at between l.stated_at - interval '1 minute' and l.stated_at + interval '1 minute')) linked
     order by is_marked, id limit ${limit}`;
  return rows.map((row) => row.id);
}

/** Marks a payment whose evaluation failed. It moves to the end of the queue of marked payments. */
export async function markForRecheck(sql: Sql, paymentId: PaymentId): Promise<void> {
  await sql`update payments set recheck_since = now() where id = ${paymentId}`;
}

/** How many times as many marked payments as a page has take turns in it. */
const TURNS = 100;

/**
 * Returns payments that an evaluation has to follow for and that were marked until `markedUntil` (epoch ms on the
 * database's clock; null: now), at least `olderThanMs` ago, with the time of the reading. Oldest first for each app, and of all
 * apps in turn: one payment of an app does not wait for the thousands of another app. Only the oldest take turns, a hundred times `limit`.
 */
export async function findPaymentsToRecheck(
  sql: Sql,
  {
    olderThanMs = 0,
    markedUntil = null,
    limit,
  }: { readonly olderThanMs?: number; readonly markedUntil?: number | null; readonly limit: number },
): Promise<{ readonly id: PaymentId; readonly readAt: number }[]> {
  const until =
    markedUntil === null ? sql.fragment`now()` : sql.fragment`${instant(markedUntil)}::timestamptz`;
  return await sql<{ id: PaymentId; readAt: number }>`
    with oldest as materialized (
      select id, app_id, recheck_since from payments
       where recheck_since <= ${until} - ${olderThanMs} * interval '1 millisecond'
       order by recheck_since, id limit ${limit * TURNS}
    )
    select id, epoch_ms(now()) as read_at
      from (select id, recheck_since, row_number() over (partition by app_id order by recheck_since, id) as turn from oldest) o
     order by turn, recheck_since, id limit ${limit}`;
}
