import { shownUsdPerUnit } from '../domain/exchange-rate.ts';
import type { Evaluation } from '../domain/evaluation.ts';
import type { CommissionId, DeliveryId, EventId, ReprocessRunId } from '../domain/ids.ts';
import { removeEncryptedBody } from './deliveries.ts';
import { violatedConstraint } from './errors.ts';
import { prepare } from './evaluation-bindings.ts';
import { newId } from './new-id.ts';
import type { StoredPayment } from './payments.ts';
import { instant } from './sql.ts';
import type { HeldCommission } from './maturing.ts';
import type { Fragment, Statements } from './sql.ts';

export interface AppliedEvaluation {
  /** The commissions that it inserted. */
  readonly commissions: readonly HeldCommission[];
  /** The outcome that the statement stored in the delivery. Null if no delivery was given or it had an outcome. */
  readonly delivery: { readonly commissionId: CommissionId | null } | null;
}

/** The delivery whose outcome is stored with an evaluation. */
export interface EvaluatedDelivery {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly sourceEventId: string;
  /** Whether its event reports a payment that an earlier event brought. Only the earlier event has a cause. */
  readonly isFurtherReport: boolean;
}

/** What the parts of the statement share. */
interface Application {
  readonly payment: StoredPayment;
  readonly evaluation: Evaluation;
  readonly delivery: EvaluatedDelivery | null;
  readonly rows: readonly CommissionRow[];
  readonly reprocessRunId: ReprocessRunId | null;
}

interface CommissionRow {
  readonly id: CommissionId;
  readonly kind: 'earning' | 'reversal' | 'correction';
  readonly eventId: EventId;
  readonly adjustmentId: string | null;
  readonly amountCents: number;
  readonly baseCents: number | null;
  readonly occurredAt: number;
}

/**
 * Appends the difference that an evaluation found, in one statement, if the payment still has the version that was
 * read. Returns null if it does not, or if another payment of the customer has taken its number: read and evaluate the payment again. With `delivery`, the same statement stores
 * the delivery's outcome. Rows that a reprocess run appends carry its id.
 *
 * The statement consists of the parts that this evaluation needs. All of them read `locked`, which is empty if another
 * evaluation came first: then none of them changes anything.
 */
export async function applyEvaluation(
  sql: Statements,
  payment: StoredPayment,
  evaluation: Evaluation,
  delivery: EvaluatedDelivery | null,
  reprocessRunId: ReprocessRunId | null = null,
): Promise<AppliedEvaluation | null> {
  const rows = commissionRows(payment, evaluation);
  const application: Application = { payment, evaluation, delivery, rows, reprocessRunId };
  const row = await sql.one<{ applied: boolean } & AppliedEvaluation>`
    with ${updatePayment(sql, application)}
    ${rows.length === 0 ? sql.fragment`` : sql.fragment`, written as (${insertCommissions(sql, application)})`}
    ${evaluation.revenue.length === 0 ? sql.fragment`` : sql.fragment`, earned as (${insertRevenue(sql, application)})`}
    ${evaluation.booked.length === 0 ? sql.fragment`` : sql.fragment`, booked as (${bookAdjustments(sql, application)})`}
    ${evaluation.binding === null || evaluation.boundBy !== null ? sql.fragment`` : sql.fragment`, first_paid as (${markFirstPaid(sql, application)})`}
    , priced as (${updatePaidEvent(sql, application)})
    ${evaluation.unconverted.length === 0 ? sql.fragment`` : sql.fragment`, unconverted as (${markUnconverted(sql, application)})`}
    ${evaluation.converted.length === 0 ? sql.fragment`` : sql.fragment`, converted as (${clearConverted(sql, application)})`}
    ${delivery?.isFurtherReport === true ? sql.fragment`, cleared as (${clearCause(sql, delivery.eventId)})` : sql.fragment``}
    ${
      delivery === null
        ? sql.fragment``
        : sql.fragment`, done as (${completeDelivery(sql, application, delivery)}), forgotten as (${removeEncryptedBody(sql)})`
    }
    select exists (select from locked) as applied,
           ${delivery === null ? sql.fragment`null::jsonb` : sql.fragment`(select jsonb_build_object('commissionId', commission_id) from done)`} as delivery,
           ${
             rows.length === 0
               ? sql.fragment`'[]'::jsonb`
               : sql.fragment`coalesce((select jsonb_agg(jsonb_build_object('commissionId', id, 'appId', app_id, 'dueAt', epoch_ms(due_at)))
                                          from written), '[]')`
           } as commissions`;
  return row.applied ? row : null;
}

/**
 * What refuses a payment that was read before the app's first policy came into effect, before its user was given to another creator, before
 * one of its keys was bound, or before its user got purchases of another one.
 */
const READ_TOO_EARLY = [
  'attributed_payments_have_a_number',
  'manual_attributions_are_followed',
  'bindings_app_id_customer_user_id_key',
  'payment_numbers_have_no_gap',
];

/** Whether an evaluation was refused because its payment was read too early: read and evaluate it again, in another transaction. */
export const wasReadTooEarly = (error: unknown): boolean =>
  READ_TOO_EARLY.includes(violatedConstraint(error) ?? '');

/** Returns the commissions of an evaluation, with new ids. */
function commissionRows(payment: StoredPayment, evaluation: Evaluation): CommissionRow[] {
  const { earning, baseCents, reversals, correction } = evaluation;
  const { eventId, occurredAt } = payment;
  const ofPayment = { eventId, occurredAt, adjustmentId: null };
  const rows: CommissionRow[] = [];
  if (earning !== null) {
    const { amountCents } = earning;
    rows.push({
      id: newId('commission'),
      kind: 'earning',
      ...ofPayment,
      amountCents,
      baseCents: earning.policy?.baseCents ?? baseCents,
    });
  }
  for (const reversal of reversals) rows.push({ id: newId('commission'), kind: 'reversal', ...reversal });
  if (correction !== null) {
    rows.push({ id: newId('commission'), kind: 'correction', ...ofPayment, ...correction });
  }
  return rows;
}

const sumOf = (rows: readonly CommissionRow[], kind: CommissionRow['kind']): number =>
  rows.reduce((sum, row) => (row.kind === kind ? sum + row.amountCents : sum), 0);

/**
 * `locked` raises the payment's version and stores the result with the sums of its commissions, if no row of the payment has changed since
 * it was read. If the payment has other references and money changes, `names` locks all its rows before, in one order, and `aliases`
 * raises the versions of the others, so that their evaluations run again: only one reference earns. Attributed ones are marked, too.
 */
function updatePayment(sql: Statements, { payment, evaluation, rows }: Application): Fragment {
  const { binding, furtherKeys, numbered, revenue, booked } = evaluation;
  const changesMoney = binding !== null || rows.length > 0 || revenue.length > 0 || booked.length > 0;
  const hasItsNumber = numbered === null ? sql.fragment`` : sql.fragment`and exists (select from numbered)`;
  const isBound = evaluation.boundBy === null ? sql.fragment`` : sql.fragment`and exists (select from bound)`;
  // Also so that they are bound before: a statement does not lock what it has changed.
  const areBound =
    furtherKeys.length === 0 ? sql.fragment`` : sql.fragment`and exists (select from further_keys)`;
  const reassigned =
    binding?.reassignedTo == null ? sql.fragment`` : sql.fragment`, attribution_id = ${binding.reassignedTo}`;
  const decided =
    evaluation.decidedBindingId === null
      ? sql.fragment``
      : sql.fragment`, decided_binding_id = coalesce(decided_binding_id, ${evaluation.decidedBindingId})`;
  // A trigger compares the duplicate of each row that sets it.
  const duplicate =
    payment.duplicateOf === null
      ? sql.fragment``
      : sql.fragment`, duplicate_of = coalesce(duplicate_of, ${payment.duplicateOf.paymentId})`;
  // The sums follow the commissions, which triggers compare after the statement.
  const sums =
    rows.length === 0
      ? sql.fragment``
      : sql.fragment`, earned_cents = earned_cents + ${sumOf(rows, 'earning')}::bigint,
             reversed_cents = reversed_cents - ${sumOf(rows, 'reversal')}::bigint,
             corrected_cents = corrected_cents - ${sumOf(rows, 'correction')}::bigint`;
  const updateRow = (condition: Fragment) => sql.fragment`
    locked as (
      update payments
         set version = version + 1, evaluated_at = coalesce(evaluated_at, now()), likely_cause = ${evaluation.likelyCause},
             base_cents = ${evaluation.baseCents}, binding_id = coalesce(binding_id, ${binding?.bindingId ?? null}) ${reassigned} ${duplicate} ${decided} ${sums},
             recheck_since = ${evaluation.waitsForUser ? sql.fragment`now()` : sql.fragment`null`}
       where id = ${payment.paymentId} and version = ${payment.version} ${isBound} ${areBound} ${hasItsNumber} ${condition}
      returning id, app_id, event_id, binding_id, attribution_id, occurred_at
    )`;
  if (!changesMoney || payment.aliasIds.length === 0) {
    const unchanged = sql.fragment`
      select id, app_id from payments where id = ${payment.paymentId} and version = ${payment.version} for update`;
    return sql.fragment`${prepare(sql, evaluation, payment, unchanged)} ${updateRow(sql.fragment``)}`;
  }
  const names = [payment.paymentId, ...payment.aliasIds];
  const haveTheirVersions = sql.fragment`
    (select sum(n.version) from names n) = ${payment.version + payment.aliasVersions}::bigint`;
  const unchanged = sql.fragment`
    select id, app_id from names where id = ${payment.paymentId} and version = ${payment.version} and ${haveTheirVersions}`;
  return sql.fragment`
    names as materialized (
      -- All evaluations lock in the same order and read the rows after that: one of another reference waits, or is seen.
      select q.id, q.app_id, q.version from payments q where q.id = any(${names}::text[]) order by q.id for update
    ), ${prepare(sql, evaluation, payment, unchanged)} ${updateRow(sql.fragment`and ${haveTheirVersions}`)},
    aliases as (
      -- An attributed row no longer counts if this evaluation attributes another one. Its own evaluation has to follow.
      update payments q
         set version = q.version + 1,
             recheck_since = case when ${binding !== null}::boolean and q.binding_id is not null and q.duplicate_of is null
                                  then coalesce(q.recheck_since, now()) else q.recheck_since end
        from locked
       where q.id = any(${[...payment.aliasIds]}::text[])
    )`;
}

/**
 * Inserts commissions. They share the terms of their earning, which are fixed when it is written: those of the evaluation, or
 * those of the stored earning.
 */
function insertCommissions(
  sql: Statements,
  { payment, evaluation, rows, reprocessRunId }: Application,
): Fragment {
  const { earning, binding } = evaluation;
  const earningId = rows.find((row) => row.kind === 'earning')?.id ?? payment.earning?.commissionId ?? null;
  const policy = policyColumns(sql, { payment, evaluation });
  const terms =
    earning === null
      ? sql.fragment`
          select c.affiliate_id, c.link_id, c.rate_bps, c.rate_source, c.due_at, c.customer_user_id, c.match_method
                 ${policy.ofStored}
            from commissions c where c.id = ${earningId}`
      : sql.fragment`
          select ${binding?.affiliateId ?? null}::text as affiliate_id, ${binding?.linkId ?? null}::text as link_id,
                 ${earning.rateBps}::int as rate_bps, ${earning.rateSource}::text as rate_source,
                 ${instant(earning.dueAt)}::timestamptz as due_at, ${earning.customerUserId}::text as customer_user_id,
                 ${binding?.matchMethod ?? null}::text as match_method ${policy.ofEarning}`;
  return sql.fragment`
    insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, adjustment_id, kind,
                             reverses_commission_id, reason, duplicate_of_commission_id, rate_bps, rate_source, base_cents,
                             amount_cents, source, customer_user_id, match_method, occurred_at, due_at, reprocess_run_id
                             ${policy.names})
    select r.id, locked.app_id, t.affiliate_id, t.link_id, r."eventId", locked.id, locked.binding_id, r."adjustmentId", r.kind,
           case when r.kind <> 'earning' then ${earningId} end,
           case r.kind when 'correction' then 'earned_under_another_reference' end,
           case r.kind when 'correction' then ${payment.duplicateOf?.commissionId ?? null} end, t.rate_bps, t.rate_source,
           r."baseCents", r."amountCents", ${payment.source}, t.customer_user_id, t.match_method,
           to_timestamp(r."occurredAt" / 1000.0), t.due_at, ${reprocessRunId} ${policy.values}
      from locked, (${terms}) t,
           rows from (jsonb_to_recordset(${sql.json(rows)}) as (id text, kind text, "eventId" text, "adjustmentId" text,
             "amountCents" bigint, "baseCents" bigint, "occurredAt" bigint)) with ordinality r
     order by r.ordinality
    returning id, app_id, due_at`;
}

/**
 * The columns of commissions with what an earning by a policy was computed from. They are left out for any other earning. Reversals and
 * corrections have those of their earning, without its inputs.
 */
function policyColumns(
  sql: Statements,
  { payment, evaluation }: Pick<Application, 'payment' | 'evaluation'>,
): Record<'names' | 'values' | 'ofStored' | 'ofEarning', Fragment> {
  const { earning } = evaluation;
  const nothing = sql.fragment``;
  const isByPolicy = earning === null ? payment.earning?.policyBaseCents != null : earning.policy !== null;
  if (!isByPolicy) return { names: nothing, values: nothing, ofStored: nothing, ofEarning: nothing };
  const policy = earning?.policy ?? null;
  return {
    names: sql.fragment`, policy_version_id, rule_index, base_kind, base_estimated, flat_cents, policy_inputs`,
    values: sql.fragment`,
           t.policy_version_id, t.rule_index, t.base_kind, t.base_estimated, t.flat_cents,
           case when r.kind = 'earning' then t.policy_inputs end`,
    ofStored: sql.fragment`,
                 c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated, c.flat_cents, null::jsonb as policy_inputs`,
    ofEarning: sql.fragment`,
                 ${earning?.rule?.versionId ?? null}::text as policy_version_id, ${policy?.ruleIndex ?? null}::smallint as rule_index,
                 ${policy?.base ?? null}::text as base_kind, ${policy?.baseEstimated ?? null}::boolean as base_estimated,
                 ${policy?.flatCents ?? null}::bigint as flat_cents, ${sql.json(policy?.inputs ?? null)}::jsonb as policy_inputs`,
  };
}

/** Inserts revenue entries of the affiliate and link that the payment is attributed to. */
function insertRevenue(sql: Statements, { payment, evaluation, reprocessRunId }: Application): Fragment {
  const { binding, revenue } = evaluation;
  const entries = revenue.map((entry, index) => ({ ...entry, position: payment.revenueEntries + index + 1 }));
  const attribution =
    binding === null
      ? sql.fragment`(select * from bindings y where y.id = locked.binding_id offset 0) b
         cross join lateral (select * from attributions y where y.id = coalesce(locked.attribution_id, b.attribution_id) offset 0)`
      : sql.fragment`(select ${binding.affiliateId}::text as affiliate_id, ${binding.linkId}::text as link_id)`;
  return sql.fragment`
    insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, adjustment_id, amount_cents, occurred_at,
                                 reprocess_run_id)
    select locked.id, v.position, locked.app_id, a.affiliate_id, a.link_id, v."adjustmentId", v."amountCents",
           to_timestamp(v."occurredAt" / 1000.0), ${reprocessRunId}
      from locked cross join lateral ${attribution} a
     cross join jsonb_to_recordset(${sql.json(entries)})
                v (position int, "adjustmentId" text, "amountCents" bigint, "occurredAt" bigint)
     order by v.position`;
}

/** Stores how much of each adjustment the ledger contains. One that was converted keeps its value until another event states it. */
function bookAdjustments(sql: Statements, { evaluation }: Application): Fragment {
  return sql.fragment`
    update adjustments a
       set booked_minor = b."bookedMinor", booked_payment_id = locked.id,
           usd_cents = case when a.event_id = b."eventId" then coalesce(b."convertedCents", a.usd_cents) else a.usd_cents end
      from locked, jsonb_to_recordset(${sql.json(evaluation.booked)})
                 b ("adjustmentId" text, "bookedMinor" bigint, "eventId" text, "convertedCents" bigint)
     where a.id = b."adjustmentId" and a.id = any(${evaluation.booked.map((one) => one.adjustmentId)}::text[])`;
}

/** Stores the cause of refunds and disputes that wait for a rate. An import of rates marks their payments. */
function markUnconverted(sql: Statements, { evaluation }: Application): Fragment {
  return sql.fragment`
    update events e set likely_cause = 'missing_exchange_rate' from locked
     where e.id = any(${[...evaluation.unconverted]}::text[]) and e.likely_cause is null`;
}

/** Removes the cause of refunds and disputes that waited for a rate and do not any more. */
function clearConverted(sql: Statements, { evaluation }: Application): Fragment {
  return sql.fragment`
    update events e set likely_cause = null from locked
     where e.id = any(${[...evaluation.converted]}::text[]) and e.likely_cause = 'missing_exchange_rate'`;
}

/**
 * Stores the time of the first payment of a customer, and through which attribution it earned: of bindings that count together, the first
 * one that pays has it.
 */
function markFirstPaid(sql: Statements, { evaluation }: Application): Fragment {
  return sql.fragment`
    update bindings b set first_paid_at = locked.occurred_at, first_paid_attribution_id = locked.attribution_id
      from locked
     where b.id = ${evaluation.binding?.bindingId ?? null} and b.first_paid_at is null
       and not exists (select from bindings y where y.id = b.counts_with and y.first_paid_at is not null)
       and not exists (select from bindings y where y.counts_with = coalesce(b.counts_with, b.id::text) and y.first_paid_at is not null)`;
}

/** Stores the cause, the amount and the frozen rate of the payment's event. */
function updatePaidEvent(sql: Statements, { payment, evaluation }: Application): Fragment {
  const { likelyCause, baseCents, customerUserId, fx } = evaluation;
  const frozenRate =
    fx === null
      ? sql.fragment``
      : sql.fragment`,
          fx_rate = coalesce(e.fx_rate, ${shownUsdPerUnit(fx)}::numeric), fx_units = coalesce(e.fx_units, ${fx.units}::numeric),
          fx_worth_usd = coalesce(e.fx_worth_usd, ${fx.worthUsd}::numeric), fx_source = coalesce(e.fx_source, ${fx.source})`;
  return sql.fragment`
    update events e
       set likely_cause = ${likelyCause}, amount_cents = coalesce(${baseCents}, e.amount_cents),
           customer_user_id = coalesce(${customerUserId}, e.customer_user_id) ${frozenRate}
      from locked
     where e.id = ${payment.eventId} and e.amount_minor is not null
       and (e.likely_cause is distinct from ${likelyCause}::text or e.amount_cents is distinct from ${baseCents}::bigint)`;
}

/** Removes the first cause of an event whose payment another event brought. */
function clearCause(sql: Statements, eventId: EventId): Fragment {
  return sql.fragment`
    update events e set likely_cause = null from locked
     where e.id = ${eventId} and e.amount_minor is not null and num_nonnulls(e.likely_cause) = 1`;
}

/** Stores the outcome of a delivery that has none. Its commission is the latest one of its event. */
function completeDelivery(sql: Statements, { rows }: Application, delivery: EvaluatedDelivery): Fragment {
  const own = rows.findLast((row) => row.eventId === delivery.eventId)?.id;
  const commissionId =
    own === undefined
      ? sql.fragment`(select c.id from commissions c where c.event_id = ${delivery.eventId}
                       order by c.created_at desc, c.id desc limit 1)`
      : sql.fragment`${own}`;
  // Written as a count of nulls, the last condition cannot lead to the index of unfinished deliveries, which may be long.
  return sql.fragment`
    update deliveries d
       set processing_status = 'processed', completed_at = now(), last_error = null, event_count = 1,
           source_event_id = ${delivery.sourceEventId}, commission_id = ${commissionId}
      from locked
     where d.id = ${delivery.deliveryId} and num_nulls(d.completed_at) = 1
    returning d.id, d.commission_id`;
}
