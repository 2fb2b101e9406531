import type { AppId, CommissionId, DeliveryId, EventId, PaymentId, ReprocessRunId } from '../domain/ids.ts';
import type { Environment } from '../domain/events.ts';
import { RATE_MAX_AGE_DAYS, shownUsdPerUnit } from '../domain/exchange-rate.ts';
import type { Evaluation, PaymentSnapshot } from '../domain/evaluate-payment.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Prefixes that sign-in services add to an id: `auth0|4711`, `firebase:4711`. */
const USER_ID_PREFIX = String.raw`^\s*[A-Za-z][\w.-]*[|:](?=\S)`;

/** The condition for an identity `i` to differ from `userId` at most in case, surrounding spaces or a prefix. */
export function isSimilarUserId(sql: Sql, userId: ReturnType<Sql['fragment']>): ReturnType<Sql['fragment']> {
  return sql.fragment`
    lower(btrim(i.customer_user_id) collate "C") = any(array[
      lower(btrim(${userId}) collate "C"),
      lower(btrim(regexp_replace(${userId}, ${USER_ID_PREFIX}, '')) collate "C")])`;
}

/** A snapshot with what is needed to apply its evaluation. */
export interface StoredPayment extends PaymentSnapshot {
  readonly paymentId: PaymentId;
  readonly appId: AppId;
  readonly eventId: EventId;
  readonly source: string;
  readonly version: number;
  readonly revenueEntries: number;
  /** Rows of the same payment under other references. */
  readonly aliasIds: readonly PaymentId[];
  /** The sum of the versions of those rows. */
  readonly aliasVersions: number;
}

/** Selects payments by id, or by their references at the store, with all rows of the same payments. */
export type PaymentSelector =
  | { readonly paymentIds: readonly PaymentId[] }
  | {
      readonly appId: AppId;
      readonly environment: Environment;
      readonly store: string;
      readonly refs: readonly string[];
    };

/**
 * Reads payments with all known facts, in one statement. Call it after the newest fact was committed: it then sees
 * every fact that was committed before. The parts of the statement:
 *
 * - the payment's own columns, and its revenue entries (`r`) and `earning` so far;
 * - `candidates`: the users whom the payment's events name or whom its provider keys lead to, with their bindings;
 * - `adjustments`: its refunds and disputes, found by any of its references;
 * - `app` and `referenceRate`: the current settings, and the exchange rate for its day;
 * - `aliases`: its rows under other references. Of several attributed rows the one with the first earning counts; the
 *   others have it as `duplicateOf`.
 */
export async function loadPayments(sql: Sql, selector: PaymentSelector): Promise<StoredPayment[]> {
  const which =
    'paymentIds' in selector
      ? sql.fragment`p.id = any(${[...selector.paymentIds]}::text[])`
      : sql.fragment`p.id = any(array(
          select id from same_payment(${selector.appId}, ${selector.environment}, ${selector.store},
                                      ${[...selector.refs]}::text[])))`;
  return await sql<StoredPayment>`
    select p.id as payment_id, p.app_id, p.event_id, e.source, p.version, p.environment, p.currency,
           p.amount_minor, p.usd_cents, p.occurred_at, e.received_at,
           p.only_anonymous_user, p.evaluated_at, p.likely_cause,
           p.base_cents, p.binding_id, p.reversed_cents, p.corrected_cents,
           r.net as revenue_cents, r.entries as revenue_entries,
           (select jsonb_build_object('commissionId', c.id, 'amountCents', c.amount_cents)
              from commissions c where c.payment_id = p.id and c.kind = 'earning') as earning,
           aliases.alias_ids, aliases.alias_versions, aliases.counted_elsewhere, aliases.duplicate_of,
           coalesce((
             select jsonb_agg(jsonb_build_object(
                      'customerUserId', u.customer_user_id,
                      'identified', exists (select from identities i
                                             where i.app_id = p.app_id and i.customer_user_id = u.customer_user_id),
                      'nearlyIdentified', b.id is null and exists (
                        select from identities i
                         where i.app_id = p.app_id and ${isSimilarUserId(sql, sql.fragment`u.customer_user_id`)}),
                      'binding', case when b.id is not null then jsonb_build_object(
                        'bindingId', b.id, 'boundAt', epoch_ms(b.created_at),
                        'touchedAt', epoch_ms(least(t.touched_at, t.created_at)), 'matchMethod', t.match_method,
                        'affiliateId', f.id, 'linkId', t.link_id, 'affiliateStatus', f.status,
                        'affiliateRateBps', f.default_commission_rate_bps) end)
                    order by u.position)
               from (select x.customer_user_id, min(x.position) as position
                       from (select customer_user_id, position from payment_users where payment_id = p.id
                             union all
                             select l.customer_user_id, 1000 + k.position
                               from payment_user_keys k
                               join user_links l on l.app_id = p.app_id and l.environment = p.environment
                                                and l.source = k.source and l.user_key = k.user_key
                              where k.payment_id = p.id) x
                      group by 1) u
               left join bindings b on b.app_id = p.app_id and b.customer_user_id = u.customer_user_id
               left join attributions t on t.id = b.attribution_id
               left join affiliates f on f.id = t.affiliate_id), '[]') as candidates,
           coalesce((
             select jsonb_agg(jsonb_build_object(
                      'adjustmentId', a.id, 'kind', a.kind, 'state', a.state, 'reversesAll', a.reverses_all, 'currency', a.currency,
                      'amountMinor', a.amount_minor, 'usdCents', a.usd_cents, 'occurredAt', epoch_ms(a.occurred_at),
                      'eventId', a.event_id,
                      'bookedMinor', case when a.booked_payment_id = p.id then a.booked_minor else 0 end))
               from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n
              cross join lateral (
                select * from adjustments x
                 where x.app_id = p.app_id and x.environment = p.environment and x.store = p.store
                   and x.payment_ref = n.ref collate "default" offset 0) a), '[]') as adjustments,
           jsonb_build_object('commissionRateBps', app.commission_rate_bps,
                              'attributionWindowDays', app.attribution_window_days,
                              'holdPeriodDays', app.hold_period_days) as app,
           (select jsonb_build_object('units', x.units::text, 'worthUsd', x.worth_usd::text, 'source', x.source || ' ' || x.day)
              from exchange_rates x
             where x.currency = p.currency and x.day <= (p.occurred_at at time zone 'UTC')::date
               and x.day >= (p.occurred_at at time zone 'UTC')::date - ${RATE_MAX_AGE_DAYS}::int
             order by x.day desc limit 1) as reference_rate,
           epoch_ms(now()) as now
      from payments p
      join apps app on app.id = p.app_id
      join events e on e.id = p.event_id
     cross join lateral (select sum(v.amount_cents)::bigint as net, count(*)::int as entries
                           from revenue_entries v where v.payment_id = p.id) r
     cross join lateral (
       select coalesce(jsonb_agg(q.id) filter (where q.id <> p.id), '[]') as alias_ids,
              coalesce(sum(q.version) filter (where q.id <> p.id), 0)::bigint as alias_versions,
              coalesce(bool_or(q.binding_id is not null) filter (where q.id <> p.id), false) as counted_elsewhere,
              case when p.binding_id is not null then
                (array_agg(jsonb_build_object('paymentId', q.id, 'commissionId', q.earning_id)
                           order by q.earning_id nulls last, q.id) filter (where q.binding_id is not null))[1] end as first
         from (select x.id, x.version, x.binding_id,
                      (select c.id from commissions c where c.payment_id = x.id and c.kind = 'earning') as earning_id
                 from same_payment(p.app_id, p.environment, p.store, array[p.ref]) x) q) rows_of_payment
     cross join lateral (
       select alias_ids, alias_versions, counted_elsewhere,
              case when first->>'paymentId' <> p.id::text then first end as duplicate_of from (select rows_of_payment.*) f) aliases
     where ${which}
     order by p.id`;
}

/** A commission that was just inserted and needs a timer for its due date. */
export interface NewCommission {
  readonly commissionId: CommissionId;
  readonly eventId: EventId;
  readonly dueAt: number;
}

export interface AppliedEvaluation {
  readonly commissions: readonly NewCommission[];
  /** The outcome that the statement stored in the delivery. Null if no delivery was given or it had an outcome. */
  readonly delivery: { readonly commissionId: CommissionId | null } | null;
}

/**
 * Appends the difference that an evaluation found, in one statement, if the payment still has the version that was
 * read. Returns null if it does not: read and evaluate the payment again. With `delivery`, the same statement stores
 * the delivery's outcome. Rows that a reprocess run appends carry its id. The parts of the statement:
 *
 * - `names` locks all rows of the payment (its references) in one order. `held` raises the version and stores the
 *   result, if no row has changed since it was read.
 * - `aliases` raises the versions of the other rows, so that their evaluations run again: only one reference earns.
 * - `terms` gives what all commissions of the payment share. `written` inserts commissions, `earned` revenue entries.
 * - `booked` stores how much of each adjustment the ledger contains. `first_paid` sets the user's first payment.
 * - `priced` stores cause, amount and frozen rate on the events; the rest stores the delivery's outcome.
 */
export async function applyEvaluation(
  sql: Sql,
  payment: StoredPayment,
  evaluation: Evaluation,
  delivery: { deliveryId: DeliveryId; eventId: EventId; sourceEventId: string } | null,
  reprocessRunId: ReprocessRunId | null = null,
): Promise<AppliedEvaluation | null> {
  const { earning, binding, fx } = evaluation;
  const shownRate = fx === null ? null : shownUsdPerUnit(fx);
  const earningId = earning === null ? payment.earning?.commissionId : newId('commission');
  const rows = [
    ...(earning === null
      ? []
      : [
          {
            id: earningId,
            kind: 'earning',
            eventId: payment.eventId,
            adjustmentId: null,
            amountCents: earning.amountCents,
            baseCents: evaluation.baseCents,
            occurredAt: payment.occurredAt,
          },
        ]),
    ...evaluation.reversals.map((r) => ({ id: newId('commission'), kind: 'reversal', ...r })),
    ...(evaluation.correction === null
      ? []
      : [
          {
            id: newId('commission'),
            kind: 'correction',
            eventId: payment.eventId,
            adjustmentId: null,
            occurredAt: payment.occurredAt,
            ...evaluation.correction,
          },
        ]),
  ];
  const revenue = evaluation.revenue.map((entry, index) => ({
    ...entry,
    position: payment.revenueEntries + index + 1,
  }));
  const changesMoney =
    binding !== null || rows.length > 0 || revenue.length > 0 || evaluation.booked.length > 0;
  const names = changesMoney && payment.aliasIds.length > 0 ? [payment.paymentId, ...payment.aliasIds] : [];
  const own = rows.findLast((row) => row.eventId === delivery?.eventId)?.id ?? null;

  const row = await sql.one<{ applied: boolean } & AppliedEvaluation>`
    with names as materialized (
      -- All evaluations lock in the same order and read the rows after that: one of another reference waits, or is seen.
      select q.id, q.version from payments q where q.id = any(${names}::text[]) order by q.id for update
    ), held as (
      update payments
         set version = version + 1, evaluated_at = coalesce(evaluated_at, now()), likely_cause = ${evaluation.likelyCause},
             base_cents = ${evaluation.baseCents}, binding_id = coalesce(binding_id, ${binding?.bindingId ?? null}),
             duplicate_of = coalesce(duplicate_of, ${payment.duplicateOf?.paymentId ?? null}), recheck_since = null
       where id = ${payment.paymentId} and version = ${payment.version}
         and (select coalesce(sum(n.version), ${payment.version + payment.aliasVersions}::bigint) from names n)
             = ${payment.version + payment.aliasVersions}::bigint
      returning id, app_id, event_id, binding_id, occurred_at
    ), aliases as (
      update payments q set version = q.version + 1 from held, names n where q.id = n.id and q.id <> held.id
    ), terms as (
      -- Fixed when the earning is written, and copied by its reversals.
      select c.affiliate_id, c.link_id, c.rate_bps, c.rate_source, c.due_at, c.customer_user_id, c.match_method
        from commissions c where c.payment_id = ${payment.paymentId} and c.kind = 'earning'
      union all
      select ${binding?.affiliateId ?? null}, ${binding?.linkId ?? null}, ${earning?.rateBps ?? null}::int, ${earning?.rateSource ?? null},
             ${earning === null ? null : instant(earning.dueAt)}::timestamptz, ${earning?.customerUserId ?? null},
             ${binding?.matchMethod ?? null}
       where ${earning !== null}::boolean
    ), written as (
      insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, adjustment_id, kind,
                               reverses_commission_id, reason, duplicate_of_commission_id, rate_bps, rate_source, base_cents, amount_cents, source, customer_user_id,
                               match_method, occurred_at, due_at, reprocess_run_id)
      select r.id, held.app_id, t.affiliate_id, t.link_id, r."eventId", held.id, held.binding_id, r."adjustmentId", r.kind,
             case when r.kind <> 'earning' then ${earningId ?? null} end,
             case r.kind when 'correction' then 'earned_under_another_reference' end,
             case r.kind when 'correction' then ${payment.duplicateOf?.commissionId ?? null} end, t.rate_bps, t.rate_source, r."baseCents", r."amountCents",
             ${payment.source}, t.customer_user_id, t.match_method,
             to_timestamp(r."occurredAt" / 1000.0), t.due_at, ${reprocessRunId}
        from held, terms t,
             rows from (jsonb_to_recordset(${sql.json(rows)}) as (id text, kind text, "eventId" text, "adjustmentId" text,
               "amountCents" bigint, "baseCents" bigint, "occurredAt" bigint)) with ordinality r
       order by r.ordinality
      returning id, event_id, due_at
    ), earned as (
      insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, adjustment_id, amount_cents, occurred_at,
                                   reprocess_run_id)
      select held.id, v.position, held.app_id, a.affiliate_id, a.link_id, v."adjustmentId", v."amountCents",
             to_timestamp(v."occurredAt" / 1000.0), ${reprocessRunId}
        from held
        join bindings b on b.id = held.binding_id
        join attributions a on a.id = b.attribution_id,
             jsonb_to_recordset(${sql.json(revenue)}) v (position int, "adjustmentId" text, "amountCents" bigint, "occurredAt" bigint)
       order by v.position
    ), booked as (
      update adjustments a set booked_minor = b."bookedMinor", booked_payment_id = held.id
        from held, jsonb_to_recordset(${sql.json(evaluation.booked)}) b ("adjustmentId" text, "bookedMinor" bigint)
       where a.id = b."adjustmentId"
    ), first_paid as (
      update bindings b set first_paid_at = held.occurred_at
        from held
       where b.id = ${binding?.bindingId ?? null} and b.first_paid_at is null
    ), priced as (
      update events e
         set likely_cause = case when e.id = held.event_id then ${evaluation.likelyCause} end,
             amount_cents = case when e.id = held.event_id then coalesce(${evaluation.baseCents}, e.amount_cents) else e.amount_cents end,
             fx_rate = case when e.id = held.event_id then coalesce(e.fx_rate, ${shownRate}::numeric) else e.fx_rate end,
             fx_units = case when e.id = held.event_id then coalesce(e.fx_units, ${fx?.units ?? null}::numeric) else e.fx_units end,
             fx_worth_usd = case when e.id = held.event_id then coalesce(e.fx_worth_usd, ${fx?.worthUsd ?? null}::numeric) else e.fx_worth_usd end,
             fx_source = case when e.id = held.event_id then coalesce(e.fx_source, ${fx?.source ?? null}) else e.fx_source end,
             customer_user_id = case when e.id = held.event_id then coalesce(${evaluation.customerUserId}, e.customer_user_id) else e.customer_user_id end
        from held
       where e.id in (held.event_id, ${delivery?.eventId ?? null}) and e.amount_minor is not null
         and (e.likely_cause is distinct from (case when e.id = held.event_id then ${evaluation.likelyCause} end)
              or (e.id = held.event_id and e.amount_cents is distinct from ${evaluation.baseCents}::bigint))
    ), done as (
      update deliveries d
         set processing_status = 'processed', completed_at = now(), last_error = null, event_count = 1,
             source_event_id = ${delivery?.sourceEventId ?? null},
             commission_id = coalesce(${own}, (select c.id from commissions c where c.event_id = d.event_id
                                                order by c.created_at desc, c.id desc limit 1))
        from held
       where d.id = ${delivery?.deliveryId ?? null} and d.completed_at is null
      returning d.commission_id
    )
    select exists (select from held) as applied,
           (select jsonb_build_object('commissionId', commission_id) from done) as delivery,
           coalesce((select jsonb_agg(jsonb_build_object('commissionId', id, 'eventId', event_id, 'dueAt', epoch_ms(due_at)))
                       from written), '[]') as commissions`;
  return row.applied ? row : null;
}

/**
 * Returns a page of a user's payments that are not attributed yet, in the order of their ids: those that name the user
 * (`payment_users`), and those with a provider's key that leads to the user. Both parts walk an index from `after`, so
 * that a page costs the same wherever it begins.
 */
export async function findWaitingPayments(
  sql: Sql,
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
    ) u
     order by id limit ${limit}`;
  return rows.map((row) => row.id);
}

/**
 * Returns at most `limit` payments with one of a provider's keys that may wait for the user of a new link: the marked ones,
 * and before them those that received the key within a minute of the link. A payment that received the key and was
 * evaluated while the link was being committed has no mark: neither statement saw the row of the other. A statement takes
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
        join user_links l on l.app_id = k.app_id and l.environment = p.environment and l.source = k.source and l.user_key = k.user_key
       where k.app_id = ${appId} and k.source = ${source} and k.user_key = any(${[...userKeys]}::text[])
         and p.binding_id is null and p.environment = 'production'
         and (p.recheck_since is not null
              or k.added_at between l.linked_at - interval '1 minute' and l.linked_at + interval '1 minute')) linked
     order by is_marked, id limit ${limit}`;
  return rows.map((row) => row.id);
}

/** Marks a payment whose evaluation failed. It moves to the end of the queue of marked payments. */
export async function markForRecheck(sql: Sql, paymentId: PaymentId): Promise<void> {
  await sql`update payments set recheck_since = now() where id = ${paymentId}`;
}

/**
 * Returns payments that an evaluation has to follow for and that were marked until `markedUntil` (epoch ms on the
 * database's clock; null: now), at least `olderThanMs` ago. Oldest first, with the time of the reading.
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
    select id, epoch_ms(now()) as read_at from payments
     where recheck_since <= ${until} - ${olderThanMs} * interval '1 millisecond'
     order by recheck_since, id limit ${limit}`;
}
