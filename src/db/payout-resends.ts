import { payeeAt } from '../domain/payee.ts';
import { decideResend } from '../domain/payout-run.ts';
import type { ReturnedPayout } from '../domain/payout-run.ts';
import type { AffiliateId, AppId, PayoutId, PayoutRunId, PayoutRunItemId } from '../domain/ids.ts';
import { findPayeesAt } from './payees.ts';
import { lockPayoutsOfAll } from './payout-lock.ts';
import { isSentAgain } from './payout-transfers.ts';
import type { Sql, Statements } from './sql.ts';

/** The statement that the money of a payout `p` came back, if that holds and no run has sent it again since. */
const openReturnOf = (sql: Statements) => sql.fragment`
  select m.transfer_position as position, m.stated_at, is_return_contradicted(p.id, m.transfer_position) as is_contradicted
    from money_of_payout(p.id) m
   where m.transfer_state = 'returned'
     and not ${isSentAgain(sql, sql.fragment`p.id`, sql.fragment`m.transfer_position`)}`;

/** The same, if no report contradicts it. */
const returnOf = (sql: Statements) => sql.fragment`
  select * from (${openReturnOf(sql)}) o where not o.is_contradicted`;

/** A payout whose money came back and was not sent again. */
export interface ListedReturn {
  readonly payoutId: PayoutId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly totalCents: number;
  readonly returnedAt: number;
}

/** Payouts whose money came back. */
interface Returns {
  /** The largest first. */
  readonly rows: readonly ListedReturn[];
  /** The number and the sum of all. */
  readonly count: number;
  readonly totalCents: number;
}

/** Returns payouts of an app whose money came back and was not sent again: those that a run sends again, and those that a report contradicts. */
export async function listReturned(
  sql: Sql,
  appId: AppId,
  limit: number,
): Promise<Returns & { readonly contradicted: Returns }> {
  const rows = await sql<ReturnRow>`
    select * from (
      select x.*, count(*) over of_kind::int as all_count, sum(x.total_cents) over of_kind::float8 as all_cents,
             row_number() over (of_kind order by x.total_cents desc, x.payout_id) as place
        from (select p.id as payout_id, p.affiliate_id, p.affiliate_name, p.total_cents, r.stated_at as returned_at, r.is_contradicted
                from ${returned(sql, appId)}) x
      window of_kind as (partition by x.is_contradicted)) y
     where place <= ${limit} order by place`;
  return {
    ...returnsOf(rows.filter((row) => !row.isContradicted)),
    contradicted: returnsOf(rows.filter((row) => row.isContradicted)),
  };
}

type ReturnRow = ListedReturn & {
  readonly isContradicted: boolean;
  readonly allCount: number;
  readonly allCents: number;
};

function returnsOf(rows: readonly ReturnRow[]): Returns {
  const { allCount = 0, allCents = 0 } = rows.at(0) ?? {};
  return {
    rows: rows.map(({ payoutId, affiliateId, affiliateName, totalCents, returnedAt }) => ({
      payoutId,
      affiliateId,
      affiliateName,
      totalCents,
      returnedAt,
    })),
    count: allCount,
    totalCents: allCents,
  };
}

/**
 * The payouts `p` of an app whose money came back, with the position `r.position` of that statement, and whether a report contradicts it.
 * Those that a run has sent again are left out first: most are, and each other one costs several reads.
 */
const returned = (sql: Statements, appId: AppId) => sql.fragment`
  (select distinct t.payout_id from payout_transfers t
    where t.app_id = ${appId} and t.state = 'returned'
      and not ${isSentAgain(sql, sql.fragment`t.payout_id`, sql.fragment`t.position`)}) d
  cross join lateral (select * from payouts x where x.id = d.payout_id offset 0) p
  cross join lateral (${openReturnOf(sql)}) r`;

/** Returns the payouts of an app whose money came back and was not sent again, with the payees of their creators at `asOf`. */
export async function readReturned(tx: Statements, appId: AppId, asOf: number): Promise<ReturnedPayout[]> {
  const payouts = await tx<Omit<ReturnedPayout, 'payee' | 'payeeExclusion'>>`
    select p.id as payout_id, f.id as affiliate_id, f.name as affiliate_name, p.total_cents, are_payouts_blocked(f.id) as is_blocked
      from ${returned(tx, appId)}
     cross join lateral (select * from affiliates x where x.id = p.affiliate_id offset 0) f
     where not r.is_contradicted`;
  const payees = await findPayeesAt(
    tx,
    appId,
    [...new Set(payouts.map(({ affiliateId }) => affiliateId))],
    asOf,
  );
  return payouts.map((payout) => {
    const { inForce, waiting, excludedAs } = payeeAt(payees.get(payout.affiliateId) ?? [], asOf);
    return { ...payout, payee: waiting ?? inForce, payeeExclusion: excludedAs };
  });
}

/** Items that one transaction decides, so that a block or another payee does not wait for all of a run. */
const DECIDED = 200;

/**
 * Decides for each item of an approved resend run whether its money is sent again, unless the run was stopped. What came back is sent again
 * by one item: a unique key holds that, too. A repetition decides nothing more.
 */
export async function decideResends(sql: Sql, runId: PayoutRunId, most = DECIDED): Promise<void> {
  let decided: number;
  do {
    decided = await sql.forManyRows().transaction(async (tx) => {
      const run = await tx.maybe`
        select from payout_runs where id = ${runId} and kind = 'resend' and status = 'approved' and stopped_at is null for update`;
      return run === undefined ? 0 : await decideItems(tx, runId, most);
    });
  } while (decided === most);
}

/** Decides the next items under the locks of their creators, so that what is read of them holds. Returns their number. */
async function decideItems(tx: Statements, runId: PayoutRunId, most: number): Promise<number> {
  const next = tx.fragment`
    (select * from payout_run_items
      where run_id = ${runId} and payout_id is not null and resend_result is null order by position limit ${most})`;
  const creators = await tx<{ readonly affiliateId: AffiliateId }>`select i.affiliate_id from ${next} i`;
  await lockPayoutsOfAll(
    tx,
    creators.map(({ affiliateId }) => affiliateId),
  );
  // In their order: who keeps what a report says of them locks them, too.
  await tx`
    select from payouts p where p.id in (select i.payout_id from ${next} i) order by p.id for no key update`;
  const items = await tx<{
    readonly id: PayoutRunItemId;
    readonly returnPosition: number | null;
    readonly isBlocked: boolean;
    readonly payeeVersion: number | null;
    readonly latestPayeeVersion: number | null;
  }>`
    select i.id, r.position as return_position, are_payouts_blocked(i.affiliate_id) as is_blocked, i.payee_version,
           (select max(y.version) from payees y where y.app_id = i.app_id and y.affiliate_id = i.affiliate_id) as latest_payee_version
      from ${next} i
     cross join lateral (select i.payout_id as id) p
      left join lateral (${returnOf(tx)}) r on true
     order by i.position`;
  const decided = items.map((item) => {
    const result = decideResend({ ...item, isReturned: item.returnPosition !== null });
    return { id: item.id, result, position: result === 'resent' ? item.returnPosition : null };
  });
  await tx`
    update payout_run_items i set resend_result = x.result, return_position = x.position
      from jsonb_to_recordset(${tx.json(decided)}) x (id text, result text, position int)
     where i.id = x.id`;
  return decided.length;
}
