import { refuseApproval } from '../domain/payout-run.ts';
import type {
  ApprovalRefusal,
  ExclusionReason,
  PayoutApproval,
  PayoutFileMethod,
  PayoutRunKind,
  PayoutRunStatus,
  ResendResult,
} from '../domain/payout-run.ts';
import type { MoneyState } from '../domain/payout-transfer.ts';
import type { AccountId, AffiliateId, AppId, KeyId, PayoutId, PayoutRunId } from '../domain/ids.ts';
import type { PayoutRunItemId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { lockOfRuns } from './payout-lock.ts';
import type { PayoutRequestStatus } from './payout-requests.ts';
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
  /** The month whose run the payout schedule has drafted, such as `2026-11`. Null: the key has drafted it. */
  readonly scheduledMonth: string | null;
  /** Who drafted it, or set the schedule. */
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
  readonly approverId: KeyId | null;
  readonly approverLabel: string | null;
  readonly approverDisplay: string | null;
}

/** Who drafts or approves a run. */
export interface Author {
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
  r.ended_at, r.scheduled_month, k.id as key_id, k.label as key_label, k.display as key_display,
  y.id as approver_id, y.label as approver_label, y.display as approver_display`;

const joined = (sql: Statements) => sql.fragment`
  cross join lateral (select id, label, display from account_keys x where x.id = r.key_id offset 0) k
  left join lateral (select id, label, display from account_keys x where x.id = r.approved_by offset 0) y on true
  cross join lateral (
    select count(*) filter (where i.is_settled)::int as settled_count, count(*) filter (where i.is_filed)::int as paid_count,
           coalesce(sum(i.expected_cents) filter (where i.is_filed), 0)::float8 as paid_cents
      from (${itemsOfRun(sql)}) i where r.status = 'approved') s`;

/** Returns a run of an app, within a transaction. Undefined for an unknown one, and one of another app. */
export async function findRunWithin(
  sql: Statements,
  appId: AppId,
  runId: PayoutRunId,
): Promise<PayoutRun | undefined> {
  return await sql.maybe<PayoutRun>`
    select ${columns(sql)} from payout_runs r ${joined(sql)} where r.app_id = ${appId} and r.id = ${runId}`;
}

/** Returns a run of an app. Undefined for an unknown one, and one of another app. */
export async function findPayoutRun(
  sql: Sql,
  appId: AppId,
  runId: PayoutRunId,
): Promise<PayoutRun | undefined> {
  return await findRunWithin(sql, appId, runId);
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
  return await sql.forManyRows().transaction(async (tx) => {
    await tx`select pg_advisory_xact_lock(${lockOfRuns(tx, appId)})`;
    await tx`select from payout_runs where app_id = ${appId} and id = ${runId} for update`;
    const run = await findRunWithin(tx, appId, runId);
    if (run === undefined) return undefined;
    const approver = await tx.one<{ readonly payoutApproval: PayoutApproval; readonly hasPart: boolean }>`
      select coalesce(a.payout_approval, 'any_key') as payout_approval, has_part_in_run(r, ${keyId}) as has_part
        from payout_runs r join apps a on a.id = r.app_id where r.id = ${runId}`;
    const refusal = refuseApproval(run, expectedTotalCents, approver);
    if (refusal !== null) return refusal;
    await tx`
      update payout_runs set status = 'approved', approved_at = now(), approved_by = ${keyId}, actor = ${tx.actor}::text::jsonb
       where id = ${runId} and status = 'draft' and ${acting(tx)}`;
    return await findRunWithin(tx, appId, runId);
  });
}

/**
 * Cancels a draft. Of a run that is being paid, pays no further creator: the payouts that are being settled are finished first. A run that
 * has ended stays as it is. Undefined for an unknown run.
 */
export async function cancelRun(sql: Sql, appId: AppId, runId: PayoutRunId): Promise<PayoutRun | undefined> {
  return await sql.forManyRows().transaction(async (tx) => {
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
    return await findRunWithin(tx, appId, runId);
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
  if (rows.length === 0 && (await findRunWithin(sql, appId, runId)) === undefined) return undefined;
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
  if (rows.length === 0 && (await findRunWithin(sql, appId, runId)) === undefined) return undefined;
  return pageOf(rows, limit);
}
