import type { AffiliateId, AppId, PayoutId, PayoutRequestId, KeyId, AccountId } from '../domain/ids.ts';
import { decidePayout, MAX_PAYOUT_CENTS, needsMoreCredits, PAYOUT_CREDITS_LIMIT } from '../domain/payout.ts';
import type { Due, DueCommissions, OutweighingCredits, PayoutDecision } from '../domain/payout.ts';
import { violatedConstraint } from './errors.ts';
import { newId } from './new-id.ts';
import { needsAnotherApprover } from './payout-approval.ts';
import { arePayoutsBlocked } from './payout-blocks.ts';
import { lockPayoutsOf } from './payout-lock.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

export type PayoutRequestStatus =
  | 'open'
  | 'paid'
  | 'empty'
  | 'total_changed'
  | 'blocked'
  /** Of a payout run: the creator has another payee than the draft says. */
  | 'payee_changed'
  | 'closed';

export interface PayoutRequest {
  readonly id: PayoutRequestId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly status: PayoutRequestStatus;
  readonly payoutId: PayoutId | null;
  readonly netCents: number | null;
  readonly expectedTotalCents: number | null;
  /** Whether earnings or bonuses remain due that the payout had no room for. False until the request is settled. */
  readonly moreDue: boolean;
}

const REQUEST_COLUMNS = (sql: Sql) => sql.fragment`
  id, app_id, affiliate_id, status, payout_id, net_cents, expected_total_cents, more_due`;

/**
 * Inserts the payout request of an authorized call. If the account has used the idempotency key for a payout request
 * before, returns that request, whatever it was for: the caller compares. Returns `key_reused` if another call used the
 * key, and undefined if the affiliate does not belong to the app.
 */
export async function openPayoutRequest(
  sql: Sql,
  r: {
    readonly id: PayoutRequestId;
    readonly appId: AppId;
    readonly affiliateId: AffiliateId;
    readonly accountId: AccountId;
    readonly keyId: KeyId;
    readonly idempotencyKey: string | null;
    readonly expectedTotalCents: number | null;
    /** How long the caller waits. After that the request is never paid, even if the caller cannot close it. */
    readonly validForMs: number;
  },
): Promise<PayoutRequest | 'key_reused' | undefined> {
  await sql`
    update payout_requests set status = 'closed', settled_at = now(), idempotency_key = null
     where account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey} and status = 'open' and expires_at <= now()`;
  // A call with the same key may close its request between two of these statements, which frees the key.
  const { request } = await retryUntilVisible(async () => {
    await sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, idempotency_key, expected_total_cents, expires_at,
                                   actor)
      select ${r.id}, f.app_id, f.id, ${r.accountId}, ${r.keyId}, ${r.idempotencyKey}, ${r.expectedTotalCents},
             now() + ${r.validForMs} * interval '1 millisecond', ${sql.actor}::text::jsonb
        from affiliates f join apps a on a.id = f.app_id
       where f.id = ${r.affiliateId} and f.app_id = ${r.appId} and a.account_id = ${r.accountId}
         and not exists (select from idempotency_keys k where k.account_id = ${r.accountId}
                            and k.idempotency_key = ${r.idempotencyKey} and k.expires_at > now())
      on conflict do nothing`;
    const opened = await sql.maybe<PayoutRequest>`
      select ${REQUEST_COLUMNS(sql)} from payout_requests
       where id = ${r.id} or (account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey})`;
    if (opened !== undefined) return { request: opened };
    const { isKnown, isReused } = await sql.one<{ isKnown: boolean; isReused: boolean }>`
      select exists (select from affiliates f join apps a on a.id = f.app_id
                      where f.id = ${r.affiliateId} and f.app_id = ${r.appId} and a.account_id = ${r.accountId}) as is_known,
             exists (select from idempotency_keys
                      where account_id = ${r.accountId} and idempotency_key = ${r.idempotencyKey}
                        and expires_at > now()) as is_reused`;
    if (isReused) return { request: 'key_reused' as const };
    return isKnown ? undefined : { request: undefined };
  });
  return request;
}

/** Returns a payout request. Undefined for an unknown id. */
export async function findPayoutRequest(
  sql: Sql,
  requestId: PayoutRequestId,
): Promise<PayoutRequest | undefined> {
  return await sql.maybe<PayoutRequest>`select ${REQUEST_COLUMNS(sql)} from payout_requests where id = ${requestId}`;
}

/**
 * Returns the other requests for the affiliate of a request that still wait, latest first: the earliest are about to be
 * given up. At most `limit`.
 */
export async function findWaitingRequests(
  sql: Sql,
  requestId: PayoutRequestId,
  limit: number,
): Promise<readonly PayoutRequestId[]> {
  const rows = await sql<{ id: PayoutRequestId }>`
    select w.id
      from payout_requests r
      join payout_requests w on w.app_id = r.app_id and w.affiliate_id = r.affiliate_id
     where r.id = ${requestId} and w.id <> r.id and w.status = 'open' and w.expires_at > now()
     order by w.id desc limit ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Closes a request whose caller stops waiting, and frees its idempotency key for another attempt. Waits for a settlement
 * that is running. Returns true if the request is closed: nothing will be paid for it. Returns false if it was settled
 * before: read it again.
 */
export async function closePayoutRequest(sql: Sql, requestId: PayoutRequestId): Promise<boolean> {
  await sql.forManyRows()`
    update payout_requests set status = 'closed', settled_at = now(), idempotency_key = null
     where id = ${requestId} and status = 'open'`;
  const row = await sql.one<{
    status: PayoutRequestStatus;
  }>`select status from payout_requests where id = ${requestId}`;
  return row.status === 'closed';
}

/**
 * Closes at most `limit` open requests that have expired, because their process died or could not reach the database.
 * Nothing is paid for them. Returns how many.
 */
export async function closeAbandonedRequests(sql: Sql, limit: number): Promise<number> {
  const rows = await sql`
    with page as materialized (
      select id from payout_requests where status = 'open' and expires_at <= now()
       order by expires_at limit ${limit} for update skip locked
    )
    update payout_requests r set status = 'closed', settled_at = now(), idempotency_key = null
      from page
     where r.id = page.id and r.status = 'open'
    returning r.id`;
  return rows.length;
}

/** A due commission was appended while a payout was decided without it. The transaction is rolled back, and decides again. */
class DueChanged extends Error {
  override readonly name = 'DueChanged';
}

/** How often a settlement decides again. */
const SETTLE_ATTEMPTS = 8;

/**
 * Settles an open payout request. A request that is no longer open moves nothing, so a second run pays nothing.
 *
 * `src/domain/payout.ts` decides from the sums of what is due. One settlement of a creator runs at a time (`lockPayoutsOf`), so what is
 * due can only grow meanwhile: a refund does not wait. The items of the payout must be what was decided; otherwise all of it
 * runs again.
 */
export async function settlePayoutRequest(
  sql: Sql,
  requestId: PayoutRequestId,
  limit = PAYOUT_CREDITS_LIMIT,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await sql.forManyRows().transaction(async (tx) => await settle(tx, requestId, limit));
      return;
    } catch (error) {
      // During an upgrade, a process of version 0.1.0 locks no creator: it may pay a commission between the decision and the items.
      const isRace = error instanceof DueChanged || violatedConstraint(error) === 'payout_items_pkey';
      if (!isRace || attempt === SETTLE_ATTEMPTS) throw error;
    }
  }
}

async function settle(tx: Statements, requestId: PayoutRequestId, limit: number): Promise<void> {
  const request = await lockOpenRequest(tx, requestId);
  if (request === undefined) return;
  await lockPayoutsOf(tx, request.affiliateId);
  if (request.asOf !== null) await tx`select set_config('tributary.settles_runs', 'on', true)`;
  const refusal = await refusalOf(tx, request);
  if (refusal !== null) {
    // Nothing will ever be paid for a closed request, so its key is free for the next one.
    await tx`
      update payout_requests
         set status = ${refusal}, settled_at = now(),
             idempotency_key = case when ${refusal}::text <> 'closed' then idempotency_key end
       where id = ${requestId}`;
    return;
  }
  const due = await sumDue(tx, request, limit);
  const outweighing = needsMoreCredits(due) ? await sumOutweighing(tx, request, due.debits) : null;
  const { expectedTotalCents: totalCents } = request;
  const expected =
    totalCents === null
      ? null
      : {
          totalCents,
          allCreditsCents: await sumCredits(tx, request),
          takenBackCents: await sumTakenBack(tx, request),
        };
  const decision = decidePayout(due, outweighing, expected);
  if (decision.status === 'paid') {
    await pay(tx, request, decision, due.debits.count + decision.credits);
  } else {
    await matureDue(tx, request, decision.credits);
    await tx`update payout_requests set ${resultOf(tx, decision)} where id = ${requestId}`;
  }
}

/** Returns why nothing is paid, whatever is due. Under the lock of the creator, it is so until the end of the transaction. */
async function refusalOf(
  tx: Statements,
  request: OpenRequest,
): Promise<'blocked' | 'payee_changed' | 'closed' | null> {
  if (await arePayoutsBlocked(tx, request.affiliateId)) return 'blocked';
  // The setting was changed after the export had begun.
  if (request.asOf === null) return (await needsAnotherApprover(tx, request.appId)) ? 'closed' : null;
  const { payeeVersion } = await tx.one<{ readonly payeeVersion: number | null }>`
    select max(version) as payee_version from payees where app_id = ${request.appId} and affiliate_id = ${request.affiliateId}`;
  return payeeVersion === request.payeeVersion ? null : 'payee_changed';
}

/** Whose commissions a request pays, and which of them. */
type Payable = Pick<OpenRequest, 'appId' | 'affiliateId' | 'asOf'>;

interface OpenRequest {
  readonly id: PayoutRequestId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly expectedTotalCents: number | null;
  /** Epoch ms. A payout run pays what was due then. Null for an export, which pays what is due now. */
  readonly asOf: number | null;
  /** The version of the payee that a payout run pays to. Null for an export, and for a creator who never had one. */
  readonly payeeVersion: number | null;
}

/** Locks a request until the end of the transaction. Undefined if it is not open any more. */
async function lockOpenRequest(tx: Statements, id: PayoutRequestId): Promise<OpenRequest | undefined> {
  return await tx.maybe<OpenRequest>`
    select r.id, r.app_id, r.affiliate_id, r.expected_total_cents, f.name as affiliate_name, run.as_of, i.payee_version
      from payout_requests r
      join affiliates f on f.id = r.affiliate_id
      left join payout_run_items i on i.request_id = r.id
      left join payout_runs run on run.id = i.run_id
     where r.id = ${id} and r.status = 'open' and r.expires_at > now()
       for update of r`;
}

/** The unpaid commissions that a request is about, of one sign: those that are due at the start of the transaction, or at the draft of a run. */
function dueOf(tx: Statements, { appId, affiliateId, asOf }: Payable, sign: Fragment): Fragment {
  const isInRun =
    asOf === null
      ? tx.fragment``
      : tx.fragment`and greatest(due_at, created_at) <= ${instant(asOf)}::timestamptz`;
  return tx.fragment`
    app_id = ${appId} and affiliate_id = ${affiliateId} and status <> 'paid' and due_at <= now() and amount_cents ${sign} 0 ${isInRun}`;
}
const debitsOf = (tx: Statements, payable: Payable) => dueOf(tx, payable, tx.fragment`<`);
const creditsOf = (tx: Statements, payable: Payable) => dueOf(tx, payable, tx.fragment`>`);

interface SumRow {
  readonly count: number;
  /** In text, because it may exceed what a number represents exactly. */
  readonly cents: string;
}
const toDue = ({ count, cents }: SumRow): Due => ({ count, cents: BigInt(cents) });

async function sumDue(tx: Statements, request: OpenRequest, limit: number): Promise<DueCommissions> {
  const debits = await tx.one<SumRow>`
    select count(*)::int as count, coalesce(sum(amount_cents), 0)::text as cents
      from commissions where ${debitsOf(tx, request)}`;
  const credits = await tx.one<SumRow & { isMoreDue: boolean }>`
    select count(*) filter (where fits)::int as count, coalesce(sum(amount_cents) filter (where fits), 0)::text as cents,
           coalesce(bool_or(not fits), false) as is_more_due
      from (select amount_cents,
                   row_number() over oldest <= ${limit} and sum(amount_cents) over oldest <= ${MAX_PAYOUT_CENTS}::numeric as fits
              from (select amount_cents, due_at, id from commissions where ${creditsOf(tx, request)}
                     order by due_at, id limit ${limit + 1}) e
            window oldest as (order by due_at, id)) f`;
  return { debits: toDue(debits), credits: toDue(credits), isMoreDue: credits.isMoreDue };
}

async function sumOutweighing(
  tx: Statements,
  request: OpenRequest,
  debits: Due,
): Promise<OutweighingCredits> {
  const row = await tx.one<SumRow & { isMoreDue: boolean }>`
    select count(*) filter (where is_needed)::int as count, coalesce(sum(amount_cents) filter (where is_needed), 0)::text as cents,
           coalesce(bool_or(not is_needed), false) as is_more_due
      from (select amount_cents,
                   sum(amount_cents) over (order by due_at, id) - amount_cents <= ${String(-debits.cents)}::numeric as is_needed
              from commissions where ${creditsOf(tx, request)}) e`;
  return { credits: toDue(row), isMoreDue: row.isMoreDue };
}

/**
 * Returns what was taken back since the draft of a run of what it pays, or of what was paid before: zero or less. Rows about one
 * commission or entry count together, so that a refund that ended changes nothing. What concerns later commissions waits with them.
 */
async function sumTakenBack(tx: Statements, { appId, affiliateId, asOf }: OpenRequest): Promise<bigint> {
  if (asOf === null) return 0n;
  const { cents } = await tx.one<{ cents: string }>`
    select coalesce(sum(least(g.cents, 0)), 0)::text as cents
      from (select sum(c.amount_cents) as cents
              from (select id, amount_cents, reverses_commission_id, entry_id from commissions
                     where app_id = ${appId} and affiliate_id = ${affiliateId} and status <> 'paid' and due_at <= now()
                       and created_at > ${instant(asOf)}::timestamptz) c
             cross join lateral (
               select r.id, greatest(r.due_at, r.created_at) <= ${instant(asOf)}::timestamptz or r.kind = 'deduction' as counts
                 from commissions r
                where r.id = coalesce(
                        c.reverses_commission_id,
                        (select u.id from entries e join commissions u on u.entry_id = e.undoes_entry_id where e.id = c.entry_id), c.id)) r
             where r.counts
             group by r.id) g`;
  return BigInt(cents);
}

async function sumCredits(tx: Statements, request: OpenRequest): Promise<bigint> {
  const { cents } = await tx.one<{ cents: string }>`
    select coalesce(sum(amount_cents), 0)::text as cents from commissions where ${creditsOf(tx, request)}`;
  return BigInt(cents);
}

/** The due commissions that a decision is about: all debits, and the oldest credits. */
function oldestDue(tx: Statements, payable: Payable, credits: number) {
  const columns = tx.fragment`id, amount_cents, occurred_at, status`;
  return tx.fragment`
    (select ${columns} from commissions where ${debitsOf(tx, payable)}
     union all
     (select ${columns} from commissions where ${creditsOf(tx, payable)} order by due_at, id limit ${credits}))`;
}

/** Marks due commissions matured that no payout contains. */
async function matureDue(tx: Statements, request: OpenRequest, credits: number): Promise<void> {
  await tx`
    update commissions c set status = 'matured', matured_at = now()
      from ${oldestDue(tx, request, credits)} due
     where c.id = due.id and c.status = 'pending'`;
}

/** The columns of a request that its decision fills. */
function resultOf(tx: Statements, { status, isMoreDue, netCents }: PayoutDecision) {
  return tx.fragment`status = ${status}, settled_at = now(), more_due = ${isMoreDue}, net_cents = ${netCents}`;
}

/** Inserts a payout with its items, and marks their commissions paid. Throws `DueChanged` if they are not those that were decided. */
async function pay(
  tx: Statements,
  request: OpenRequest,
  decision: PayoutDecision,
  itemCount: number,
): Promise<void> {
  const { id, appId, affiliateId, affiliateName } = request;
  const payoutId = newId('payout');
  // One statement: the audit row of a payout names the caller of its request.
  await tx`
    with payout as (
      insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents)
      values (${payoutId}, ${appId}, ${affiliateId}, ${affiliateName}, ${itemCount}, ${decision.netCents})
      returning id
    )
    update payout_requests r set ${resultOf(tx, decision)}, payout_id = payout.id from payout where r.id = ${id}`;
  // The position is the place of the row in the CSV.
  const items = await tx.one<SumRow>`
    with items as (
      insert into payout_items (payout_id, commission_id, app_id, affiliate_id, amount_cents, position)
      select ${payoutId}, id, ${appId}, ${affiliateId}, amount_cents, row_number() over (order by occurred_at, id)
        from ${oldestDue(tx, request, decision.credits)} due
      returning amount_cents
    )
    select count(*)::int as count, coalesce(sum(amount_cents), 0)::text as cents from items`;
  if (items.count !== itemCount || BigInt(items.cents) !== BigInt(decision.netCents)) throw new DueChanged();
  await tx`
    update commissions c
       set status = 'paid', matured_at = coalesce(c.matured_at, now()), paid_at = now(), payout_id = ${payoutId}
      from payout_items i
     where i.payout_id = ${payoutId} and c.id = i.commission_id`;
}
