import { payeeAt } from '../domain/payee.ts';
import { DRAFT_VALID_MS, draftPayoutRun, draftResend } from '../domain/payout-run.ts';
import type { PayoutRunOrder, UnpaidCreator } from '../domain/payout-run.ts';
import type { AppId, KeyId, PayoutRunId } from '../domain/ids.ts';
import type { PayoutSchedule } from '../domain/payout-schedule.ts';
import { monthThatIsDue } from '../domain/payout-schedule.ts';
import { MAX_PAYOUT_CENTS, PAYOUT_CREDITS_LIMIT } from '../domain/payout.ts';
import type { AccountId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { findPayeesAt } from './payees.ts';
import { payableParts } from './payout-lists.ts';
import { lockOfRuns } from './payout-lock.ts';
import { readReturned } from './payout-resends.ts';
import { findRunWithin } from './payout-runs.ts';
import type { Author, PayoutRun } from './payout-runs.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** Who is in a draft, and who is left out. */
type Plan = ReturnType<typeof draftPayoutRun> & { readonly asOf: number };

/**
 * Drafts a run: writes who is paid what, and who is left out. Pays nothing. A draft before it is cancelled. Null while a run is being
 * paid. A call that runs again with the same id writes nothing and returns the same.
 */
export async function draftRun(
  sql: Sql,
  order: Author & PayoutRunOrder & { readonly id: PayoutRunId },
): Promise<PayoutRun | null> {
  const { id, appId } = order;
  return await sql.forManyRows().transaction(async (tx) => {
    if (!(await tryToLock(tx, appId))) return null;
    const stored = await findRunWithin(tx, appId, id);
    if (stored !== undefined) return stored;
    const isPaying = await tx.maybe`select from payout_runs where app_id = ${appId} and status = 'approved'`;
    if (isPaying !== undefined) return null;
    await replaceDraft(tx, appId);
    await writeDraft(tx, { ...order, scheduledMonth: null }, await planDraft(tx, appId, order));
    return (await findRunWithin(tx, appId, id)) ?? null;
  });
}

/** An app whose schedule may have a run to draft. */
export interface ScheduledApp {
  readonly appId: AppId;
  readonly accountId: AccountId;
  readonly schedule: PayoutSchedule;
  readonly keyId: KeyId;
  /** Since when the day and the time zone of the schedule count, epoch ms. */
  readonly since: number;
}

/** Returns the next apps after an id that have a payout schedule, in the order of their ids. */
export async function scheduledAppsAfter(sql: Sql, after: string, limit: number): Promise<ScheduledApp[]> {
  return await sql<ScheduledApp>`
    select ${scheduledColumns(sql)} from apps where payout_schedule is not null and id > ${after} order by id limit ${limit}`;
}

const scheduledColumns = (sql: Statements) => sql.fragment`
  id as app_id, account_id, payout_schedule as schedule, payout_schedule_key as key_id, payout_schedule_since as since`;

/** The months of these that are done with, as `APP MONTH`. */
export async function findDoneMonths(
  sql: Sql,
  months: readonly { readonly appId: AppId; readonly month: string }[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ appId: AppId; month: string }>`
    select d.app_id, d.month
      from jsonb_to_recordset(${sql.json(months)}) x ("appId" text, month text)
     cross join lateral (
       select * from payout_schedule_months m where m.app_id = x."appId" and m.month = x.month offset 0) d`;
  return new Set(rows.map(({ appId, month }) => `${appId} ${month}`));
}

/** Whether the run of a month, such as `2026-11`, is done with: it paid, was cancelled or has expired, or nobody would have been paid. */
export async function isMonthOver(sql: Sql, appId: AppId, month: string): Promise<boolean> {
  const over = await sql.maybe`
    select from payout_schedule_months m
      left join lateral (select * from payout_runs x where x.id = m.run_id offset 0) r on true
     where m.app_id = ${appId} and m.month = ${month}
       and (r.id is null or r.status not in ('draft', 'approved') or r.status = 'draft' and r.expires_at <= now())`;
  return over !== undefined;
}

/** What became of the run of a month. `waits`: a run is being paid, or a draft of a person waits for its approval. */
export type ScheduledDraft = 'drafted' | 'nothing_due' | 'waits' | 'not_due';

/**
 * Drafts the run of the month that is due at `now`, epoch ms, for an app with a payout schedule, as it is set at this moment. Each month
 * is done with once, whatever drafts at the same time: its row is written with the draft. If nobody would be paid, there is no draft, and
 * the month is done with, too. A run that is being paid and a draft of a person are left alone: the month waits. An earlier draft of the
 * schedule, and one that has expired, are replaced.
 */
export async function draftScheduledRun(sql: Sql, appId: AppId, now: number): Promise<ScheduledDraft> {
  return await sql
    .actingAs({ kind: 'service' })
    .forManyRows()
    .transaction(async (tx) => {
      if (!(await tryToLock(tx, appId))) return 'waits';
      const app = await tx.maybe<ScheduledApp>`
        select ${scheduledColumns(tx)} from apps where id = ${appId} and payout_schedule is not null`;
      const month = app === undefined ? null : monthThatIsDue(app.schedule, app.since, now);
      if (app === undefined || month === null) return 'not_due';
      const done = await tx.maybe`
        select from payout_schedule_months where app_id = ${appId} and month = ${month}`;
      if (done !== undefined) return 'not_due';
      const inTheWay = await tx.maybe`
        select from payout_runs
         where app_id = ${appId} and (status = 'approved' or status = 'draft' and scheduled_month is null and item_count > 0 and expires_at > now())`;
      if (inTheWay !== undefined) return 'waits';
      const { minimumCents, withoutPayee } = app.schedule;
      const order = { kind: 'pay', minimumCents, includesWithoutPayee: withoutPayee === 'include' } as const;
      const plan = await planDraft(tx, appId, order);
      const isEmpty = plan.items.length === 0;
      const id = newId('payoutRun');
      if (!isEmpty) {
        await replaceDraft(tx, appId);
        await writeDraft(tx, { ...app, ...order, id, scheduledMonth: month }, plan);
      }
      await tx`
        insert into payout_schedule_months (app_id, month, run_id)
        values (${appId}, ${month}, ${isEmpty ? null : id})`;
      return isEmpty ? 'nothing_due' : 'drafted';
    });
}

/** Takes the lock of the runs of an app. False while another transaction has it: others would wait with a connection each, of which other accounts need some. */
async function tryToLock(tx: Statements, appId: AppId): Promise<boolean> {
  const { isLocked } = await tx.one<{ isLocked: boolean }>`
    select pg_try_advisory_xact_lock(${lockOfRuns(tx, appId)}) as is_locked`;
  return isLocked;
}

/** Decides who is paid by a draft that is made now. */
async function planDraft(tx: Statements, appId: AppId, order: PayoutRunOrder): Promise<Plan> {
  const asOf = await chooseAsOf(tx);
  const plan =
    order.kind === 'pay'
      ? draftPayoutRun(await readUnpaid(tx, appId, asOf), order)
      : draftResend(await readReturned(tx, appId, asOf), order);
  return { ...plan, asOf };
}

async function writeDraft(
  tx: Statements,
  run: Author & PayoutRunOrder & { readonly id: PayoutRunId; readonly scheduledMonth: string | null },
  { items, exclusions, totalCents, asOf }: Plan,
): Promise<void> {
  const { id, appId } = run;
  await tx`
    insert into payout_runs (id, app_id, account_id, key_id, kind, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at,
                             scheduled_month)
    select ${id}::text, ${appId}::text, ${run.accountId}::text, ${run.keyId}::text, ${run.kind}::text, ${instant(asOf)}::timestamptz,
           ${run.minimumCents}::bigint, ${run.includesWithoutPayee}::boolean, ${items.length}::int, ${totalCents}::bigint,
           now() + ${DRAFT_VALID_MS} * interval '1 millisecond', ${run.scheduledMonth}::text
     where ${acting(tx)}`;
  const identified = items.map((item, n) => ({ ...item, id: newId('payoutRunItem'), position: n + 1 }));
  await tx`
    insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payee_version, payout_id)
    select x.id, ${appId}::text, ${id}::text, x."affiliateId", x."affiliateName", x.position, x."expectedCents", x.method, x."payeeVersion",
           x."payoutId"
      from jsonb_to_recordset(${tx.json(identified)}) x
           (id text, "affiliateId" text, "affiliateName" text, position int, "expectedCents" bigint, method text, "payeeVersion" int, "payoutId" text)`;
  await tx`
    insert into payout_run_exclusions (app_id, run_id, affiliate_id, affiliate_name, position, reason, balance_cents, held_cents)
    select ${appId}::text, ${id}::text, x."affiliateId", x."affiliateName", x.position, x.reason, x."balanceCents", x."heldCents"
      from jsonb_to_recordset(${tx.json(exclusions.map((row, n) => ({ ...row, position: n + 1 })))}) x
           ("affiliateId" text, "affiliateName" text, position int, reason text, "balanceCents" bigint, "heldCents" bigint)`;
}

/** Cancels the draft of an app, and removes its lists. */
async function replaceDraft(tx: Statements, appId: AppId): Promise<void> {
  const [draft] = await tx<{ id: PayoutRunId }>`
    update payout_runs set status = 'cancelled', ended_at = now()
     where app_id = ${appId} and status = 'draft' and ${acting(tx)} returning id`;
  if (draft === undefined) return;
  await tx`delete from payout_run_items where run_id = ${draft.id}`;
  await tx`delete from payout_run_exclusions where run_id = ${draft.id}`;
}

/** No transaction of the service takes longer, ms. */
const LONGEST_TRANSACTION_MS = 60_000;

/**
 * Returns an instant before which nothing can be written any more, epoch ms: the start of the oldest open transaction, whose rows will have
 * that time. The next statement sees all that was written until then, and so does the settlement of the run.
 */
async function chooseAsOf(tx: Statements): Promise<number> {
  const { asOf } = await tx.one<{ asOf: number }>`
    select floor(epoch_ms(greatest(statement_timestamp() - ${LONGEST_TRANSACTION_MS} * interval '1 millisecond',
                                   least(statement_timestamp(), min(xact_start)))))::float8 as as_of
      from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  return asOf;
}

/** Returns the creators of an app with unpaid commissions, from the stored sums and what became due since. What is unpaid and not due is held. */
async function readUnpaid(tx: Statements, appId: AppId, asOf: number): Promise<UnpaidCreator[]> {
  const creators = await tx<Omit<UnpaidCreator, 'payee' | 'payeeExclusion'>>`
    with due as (
      select affiliate_id::text as affiliate_id, sum(cents) as cents, sum(items) as items
        from (${payableParts(tx, appId, asOf)}
              union all
              -- What was due later, or written later.
              select affiliate_id, -amount_cents, -1 from commissions
               where app_id = ${appId} and status = 'matured' and greatest(due_at, created_at) > ${instant(asOf)}
              union all
              select affiliate_id, -amount_cents, -1 from commissions
               where app_id = ${appId} and status = 'pending' and due_at <= ${instant(asOf)} and created_at > ${instant(asOf)}) p
       group by 1 having sum(cents) <> 0 or sum(items) > 0
    ), unpaid as (
      select scope_id as affiliate_id, sum(commission_cents - paid_cents) as cents
        from rollup_totals where app_id = ${appId} and scope = 'affiliate' group by 1 having sum(commission_cents - paid_cents) <> 0
    )
    select f.id as affiliate_id, f.name as affiliate_name, coalesce(d.cents, 0)::float8 as due_cents,
           (coalesce(u.cents, 0) - coalesce(d.cents, 0))::float8 as held_cents,
           abs(coalesce(d.cents, 0)) > ${MAX_PAYOUT_CENTS} or case when d.items > ${PAYOUT_CREDITS_LIMIT} then (
             select count(*) > ${PAYOUT_CREDITS_LIMIT}
               from (select from commissions c
                      where c.app_id = ${appId} and c.affiliate_id = f.id and c.status <> 'paid' and c.amount_cents > 0
                        and c.due_at <= ${instant(asOf)} limit ${PAYOUT_CREDITS_LIMIT + 1}) e) else false end as exceeds_payout,
           are_payouts_blocked(f.id) as is_blocked
      from due d
      full join unpaid u using (affiliate_id)
      join affiliates f on f.app_id = ${appId} and f.id = affiliate_id`;
  const ids = creators.map(({ affiliateId }) => affiliateId);
  const payees = await findPayeesAt(tx, appId, ids, asOf);
  return creators.map((creator) => {
    const { inForce, waiting, excludedAs } = payeeAt(payees.get(creator.affiliateId) ?? [], asOf);
    return { ...creator, payee: waiting ?? inForce, payeeExclusion: excludedAs };
  });
}
