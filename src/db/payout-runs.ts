import { payeeAt } from '../domain/payee.ts';
import { DRAFT_VALID_MS, draftPayoutRun, draftResend, refuseApproval } from '../domain/payout-run.ts';
import type {
  ApprovalRefusal,
  ExclusionReason,
  PayoutApproval,
  PayoutFileMethod,
  PayoutRunKind,
  PayoutRunOrder,
  PayoutRunStatus,
  ResendResult,
  UnpaidCreator,
} from '../domain/payout-run.ts';
import type { MoneyState } from '../domain/payout-transfer.ts';
import { MAX_PAYOUT_CENTS, PAYOUT_EARNINGS_LIMIT } from '../domain/payout.ts';
import type { AccountId, AffiliateId, AppId, KeyId, PayoutId, PayoutRunId } from '../domain/ids.ts';
import type { PayoutRunItemId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { findPayeesAt } from './payees.ts';
import { readReturned } from './payout-resends.ts';
import { payableParts } from './payout-lists.ts';
import type { PayoutRequestStatus } from './payout-requests.ts';
import { instant, LONG_STATEMENT_MS } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** A run that pays many creators. Amounts are in US cents, instants epoch ms. */
export interface PayoutRun {
  readonly id: PayoutRunId;
  readonly kind: PayoutRunKind;
  readonly status: PayoutRunStatus;
  readonly asOf: number;
  readonly minimumCents: number;
  readonly includesWithoutPayee: boolean;
  /** The creators that it pays, and what it pays them in all. */
  readonly itemCount: number;
  readonly totalCents: number;
  /** The items that were settled, those of them that were paid or sent again, and the sum of these. */
  readonly settledCount: number;
  readonly paidCount: number;
  readonly paidCents: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly approvedAt: number | null;
  readonly stoppedAt: number | null;
  readonly endedAt: number | null;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
  readonly approverId: KeyId | null;
  readonly approverLabel: string | null;
  readonly approverDisplay: string | null;
}

interface Author {
  readonly appId: AppId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
}

/** The items of a run `r`, whether they are settled, and whether they are in its files: paid or sent again. */
export const itemsOfRun = (sql: Statements) => sql.fragment`
  select i.*, i.resend_result is not null or q.status <> 'open' as is_settled,
         coalesce(i.resend_result = 'resent', q.status = 'paid', false) as is_filed
    from payout_run_items i
    left join lateral (select * from payout_requests x where x.id = i.request_id offset 0) q on true
   where i.run_id = r.id`;

/** The columns of a `PayoutRun` of a row `r`. */
const columns = (sql: Statements) => sql.fragment`
  r.id, r.kind, case when r.status = 'draft' and r.expires_at <= now() then 'expired' else r.status end as status, r.as_of, r.minimum_cents, r.includes_without_payee,
  r.item_count, r.total_cents, case r.status when 'settled' then r.item_count else s.settled_count end as settled_count,
  coalesce(r.paid_count, s.paid_count) as paid_count, coalesce(r.paid_cents, s.paid_cents)::float8 as paid_cents, r.created_at, r.expires_at, r.approved_at, r.stopped_at,
  r.ended_at, k.id as key_id, k.label as key_label, k.display as key_display,
  y.id as approver_id, y.label as approver_label, y.display as approver_display`;

const joined = (sql: Statements) => sql.fragment`
  cross join lateral (select id, label, display from account_keys x where x.id = r.key_id offset 0) k
  left join lateral (select id, label, display from account_keys x where x.id = r.approved_by offset 0) y on true
  cross join lateral (
    select count(*) filter (where i.is_settled)::int as settled_count, count(*) filter (where i.is_filed)::int as paid_count,
           coalesce(sum(i.expected_cents) filter (where i.is_filed), 0)::float8 as paid_cents
      from (${itemsOfRun(sql)}) i where r.status = 'approved') s`;

async function find(sql: Statements, appId: AppId, runId: PayoutRunId): Promise<PayoutRun | undefined> {
  return await sql.maybe<PayoutRun>`
    select ${columns(sql)} from payout_runs r ${joined(sql)} where r.app_id = ${appId} and r.id = ${runId}`;
}

/** Returns a run of an app. Undefined for an unknown one, and one of another app. */
export async function findPayoutRun(
  sql: Sql,
  appId: AppId,
  runId: PayoutRunId,
): Promise<PayoutRun | undefined> {
  return await find(sql, appId, runId);
}

/** Returns a page of the runs of an app, the latest first. */
export async function listPayoutRuns(
  sql: Sql,
  appId: AppId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<PayoutRun, number>> {
  const rows = await sql<PayoutRun & Position<number>>`
    select ${columns(sql)}, r.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from payout_runs
             where app_id = ${appId} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) r
      ${joined(sql)}
     order by r.sort_key desc, r.id desc`;
  return pageOf(rows, limit);
}

/**
 * Drafts a run: writes who is paid what, and who is left out. Pays nothing. A draft before it is cancelled. Null while a run is being
 * paid. A call that runs again with the same id writes nothing and returns the same.
 */
export async function draftRun(
  sql: Sql,
  { id, appId, accountId, keyId, ...order }: Author & PayoutRunOrder & { readonly id: PayoutRunId },
): Promise<PayoutRun | null> {
  return await sql.within(LONG_STATEMENT_MS).transaction(async (tx) => {
    // Others would wait with a connection each, of which other accounts need some.
    const { isLocked } = await tx.one<{ isLocked: boolean }>`
      select pg_try_advisory_xact_lock(${lockOfRuns(tx, appId)}) as is_locked`;
    if (!isLocked) return null;
    const stored = await find(tx, appId, id);
    if (stored !== undefined) return stored;
    const isPaying = await tx.maybe`select from payout_runs where app_id = ${appId} and status = 'approved'`;
    if (isPaying !== undefined) return null;
    await replaceDraft(tx, appId);
    const asOf = await chooseAsOf(tx);
    const { items, exclusions, totalCents } =
      order.kind === 'pay'
        ? draftPayoutRun(await readUnpaid(tx, appId, asOf), order)
        : draftResend(await readReturned(tx, appId, asOf), order);
    await tx`
      insert into payout_runs (id, app_id, account_id, key_id, kind, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at)
      select ${id}::text, ${appId}::text, ${accountId}::text, ${keyId}::text, ${order.kind}::text, ${instant(asOf)}::timestamptz, ${order.minimumCents}::bigint,
             ${order.includesWithoutPayee}::boolean,
             ${items.length}::int, ${totalCents}::bigint, now() + ${DRAFT_VALID_MS} * interval '1 millisecond'
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
    return (await find(tx, appId, id)) ?? null;
  });
}

/** The lock under which runs of an app are drafted and approved, until the end of the transaction. */
const lockOfRuns = (tx: Statements, appId: AppId) =>
  tx.fragment`hashtextextended('payout runs of ' || ${appId}::text, 0)`;

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
           abs(coalesce(d.cents, 0)) > ${MAX_PAYOUT_CENTS} or case when d.items > ${PAYOUT_EARNINGS_LIMIT} then (
             select count(*) > ${PAYOUT_EARNINGS_LIMIT}
               from (select from commissions c
                      where c.app_id = ${appId} and c.affiliate_id = f.id and c.status <> 'paid' and c.amount_cents > 0
                        and c.due_at <= ${instant(asOf)} limit ${PAYOUT_EARNINGS_LIMIT + 1}) e) else false end as exceeds_payout,
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

/**
 * Approves a draft. Its workflow then pays each item. Returns why it is refused (`refuseApproval`). Undefined for an unknown run. A second call with the same total changes nothing.
 */
export async function approveRun(
  sql: Sql,
  {
    appId,
    keyId,
    runId,
    expectedTotalCents,
  }: Author & { readonly runId: PayoutRunId; readonly expectedTotalCents: number },
): Promise<PayoutRun | ApprovalRefusal | undefined> {
  return await sql.within(LONG_STATEMENT_MS).transaction(async (tx) => {
    await tx`select pg_advisory_xact_lock(${lockOfRuns(tx, appId)})`;
    await tx`select from payout_runs where app_id = ${appId} and id = ${runId} for update`;
    const run = await find(tx, appId, runId);
    if (run === undefined) return undefined;
    const approver = await tx.one<{ readonly payoutApproval: PayoutApproval; readonly hasPart: boolean }>`
      select coalesce(a.payout_approval, 'any_key') as payout_approval, has_part_in_run(r, ${keyId}) as has_part
        from payout_runs r join apps a on a.id = r.app_id where r.id = ${runId}`;
    const refusal = refuseApproval(run, expectedTotalCents, approver);
    if (refusal !== null) return refusal;
    await tx`
      update payout_runs set status = 'approved', approved_at = now(), approved_by = ${keyId}, actor = ${tx.actor}::text::jsonb
       where id = ${runId} and status = 'draft' and ${acting(tx)}`;
    return await find(tx, appId, runId);
  });
}

/**
 * Cancels a draft. Of a run that is being paid, pays no further creator: the payouts that are being settled are finished first. A run that
 * has ended stays as it is. Undefined for an unknown run.
 */
export async function cancelRun(sql: Sql, appId: AppId, runId: PayoutRunId): Promise<PayoutRun | undefined> {
  return await sql.within(LONG_STATEMENT_MS).transaction(async (tx) => {
    // Waits for a decision about its items. Only a statement that begins afterwards sees what was decided.
    await tx`select from payout_runs where app_id = ${appId} and id = ${runId} for update`;
    await tx`
      update payout_runs
         set status = case status when 'draft' then 'cancelled' else status end,
             ended_at = case status when 'draft' then now() end,
             stopped_at = case status when 'approved' then now() end
       where app_id = ${appId} and id = ${runId} and status in ('draft', 'approved') and stopped_at is null and ${acting(tx)}
         -- What is in a file to be sent again can't be taken out of it.
         and not exists (select from payout_run_items i where i.run_id = ${runId} and i.resend_result is not null)`;
    await tx`
      update payout_requests q set status = 'closed', settled_at = now()
        from payout_runs r join payout_run_items i on i.run_id = r.id
       where r.app_id = ${appId} and r.id = ${runId} and r.stopped_at is not null and i.request_id = q.id and q.status = 'open'`;
    return await find(tx, appId, runId);
  });
}

/**
 * What became of an item. `waiting`: not settled yet; `resent`: the money of its payout is sent again, `not_returned`: it has not come back,
 * or was sent again since; `total_changed`: a refund, deduction or export changed what is due; `blocked`: the
 * payouts were blocked; `payee_changed`: the payee was changed; `empty`: nothing was due; `closed`: its request ended before Temporal could work on it; `cancelled`: the run was
 * stopped before. Whoever was not paid is in the next draft.
 */
export const ITEM_OUTCOMES = [
  'waiting',
  'paid',
  'resent',
  'not_returned',
  'total_changed',
  'blocked',
  'payee_changed',
  'empty',
  'closed',
  'cancelled',
] as const;
export type ItemOutcome = (typeof ITEM_OUTCOMES)[number];

export interface PayoutRunItem {
  readonly id: PayoutRunItemId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly expectedCents: number;
  readonly method: PayoutFileMethod;
  /** Null while nothing is approved. */
  readonly outcome: ItemOutcome | null;
  /** Null unless it was paid. That of a resend run is known from the draft on. */
  readonly payoutId: PayoutId | null;
  /** Where the money is; of a payout that is sent again, since then. Null: nothing is stated that holds. */
  readonly transferState: MoneyState | null;
}

/** Returns a page of the items of a run, the largest first. */
export async function listRunItems(
  sql: Sql,
  appId: AppId,
  runId: PayoutRunId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<PayoutRunItem, number> | undefined> {
  const rows = await sql<
    Omit<PayoutRunItem, 'outcome'> &
      Position<number> & {
        readonly requestStatus: PayoutRequestStatus | null;
        readonly resendResult: ResendResult | null;
        readonly isApproved: boolean;
        readonly isStopped: boolean;
      }
  >`
    select i.id, i.affiliate_id, i.affiliate_name, i.expected_cents, i.method, i.position as sort_key, q.status as request_status, i.resend_result,
           coalesce(i.payout_id, q.payout_id) as payout_id, case when l.transfer_position > coalesce(i.return_position, 0) then l.transfer_state end as transfer_state, r.approved_at is not null as is_approved, r.stopped_at is not null as is_stopped
      from (select * from payout_run_items
             where app_id = ${appId} and run_id = ${runId} and position > ${after?.sortKey ?? 0}
             order by position limit ${limit + 1}) i
     cross join lateral (select * from payout_runs x where x.id = i.run_id offset 0) r
      left join lateral (select * from payout_requests x where x.id = i.request_id offset 0) q on true
      left join lateral (
        select * from money_of_payout(coalesce(i.payout_id, q.payout_id))) l on true
     order by i.position`;
  if (rows.length === 0 && (await find(sql, appId, runId)) === undefined) return undefined;
  const page: Page<(typeof rows)[number], number> = pageOf(rows, limit);
  return {
    next: page.next,
    rows: page.rows.map(({ requestStatus, resendResult, isApproved, isStopped, ...item }) => ({
      ...item,
      outcome: isApproved ? (resendResult ?? outcomeOf(requestStatus, isStopped)) : null,
    })),
  };
}

function outcomeOf(status: PayoutRequestStatus | null, isStopped: boolean): ItemOutcome {
  if (status === null) return isStopped ? 'cancelled' : 'waiting';
  if (status === 'open') return 'waiting';
  return status === 'closed' && isStopped ? 'cancelled' : status;
}

export interface RunExclusion {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly reason: ExclusionReason;
  readonly balanceCents: number;
  readonly heldCents: number;
}

/** Returns a page of the creators whom a run leaves out, those to whom most is due first. */
export async function listRunExclusions(
  sql: Sql,
  appId: AppId,
  runId: PayoutRunId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<RunExclusion, number> | undefined> {
  const rows = await sql<RunExclusion & Position<number>>`
    select affiliate_id as id, affiliate_id, affiliate_name, reason, balance_cents, held_cents, position as sort_key
      from payout_run_exclusions
     where app_id = ${appId} and run_id = ${runId} and position > ${after?.sortKey ?? 0}
     order by position limit ${limit + 1}`;
  if (rows.length === 0 && (await find(sql, appId, runId)) === undefined) return undefined;
  return pageOf(rows, limit);
}
