import type { AffiliateId, AppId, KeyId, PayoutId } from '../domain/ids.ts';
import { PAYOUT_EARNINGS_LIMIT } from './ledger.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export interface PayoutListRow {
  readonly id: PayoutId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly itemCount: number;
  readonly totalCents: number;
  readonly createdAt: number;
  readonly csvSha256: string | null;
  /** Its place in the hash chain of the app. Null until the CSV is stored. */
  readonly chainPosition: number | null;
  /** Hexadecimal. Null for the first payout of an app, and until the CSV is stored. */
  readonly chainPreviousHash: string | null;
  readonly chainHash: string | null;
  /** The key that paid it. All three are null for a payout that was recorded from its CSV. */
  readonly keyId: KeyId | null;
  readonly keyLabel: string | null;
  readonly keyDisplay: string | null;
}

/** Joins a payout `p` with its place in the hash chain and the key that paid it, by one index lookup each. */
const withProofAndKey = (sql: Sql) => sql.fragment`
  left join payout_chain c on c.payout_id = p.id
  left join lateral (
    select k.id, k.label, k.display
      from payout_requests r cross join lateral (select * from account_keys x where x.id = r.key_id offset 0) k
     where r.payout_id = p.id offset 0) k on true`;

const PAYOUT_COLUMNS = (sql: Sql) => sql.fragment`
  p.*, c.position as chain_position, encode(c.previous_hash, 'hex') as chain_previous_hash, encode(c.hash, 'hex') as chain_hash,
  k.id as key_id, k.label as key_label, k.display as key_display`;

/** Returns one payout of an app. Undefined for an unknown one and for one of another app. */
export async function findListedPayout(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<PayoutListRow | undefined> {
  return await sql.maybe<PayoutListRow>`
    select ${PAYOUT_COLUMNS(sql)}
      from (select id, affiliate_id, affiliate_name, item_count, total_cents, created_at, encode(csv_sha256, 'hex') as csv_sha256
              from payouts where app_id = ${appId} and id = ${payoutId}) p
      ${withProofAndKey(sql)}`;
}

/** Returns a page of an app's payouts, the latest first. An affiliate's name is the one at the time of the payout. */
export async function listPayouts(
  sql: Sql,
  appId: AppId,
  filter: { readonly affiliateId: AffiliateId | null },
  after: Position<number> | null,
  limit: number,
): Promise<Page<PayoutListRow, number>> {
  const ofAffiliate =
    filter.affiliateId === null ? sql.fragment`` : sql.fragment`and affiliate_id = ${filter.affiliateId}`;
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (created_at, id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<PayoutListRow & Position<number>>`
    select ${PAYOUT_COLUMNS(sql)}
      from (select id, affiliate_id, affiliate_name, item_count, total_cents, created_at, encode(csv_sha256, 'hex') as csv_sha256,
                   (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from payouts
             where app_id = ${appId} ${ofAffiliate} ${from}
             order by created_at desc, id desc limit ${limit + 1}) p
      ${withProofAndKey(sql)}
     order by p.sort_key desc, p.id desc`;
  return pageOf(rows, limit);
}

export interface PreviewRow {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly count: number;
  readonly totalCents: number;
  /** Whether more rows are due than a payout has earnings: one export may not pay all. */
  readonly moreRemains: boolean;
}

/**
 * Returns what exports at `asOf` would pay each affiliate: matured commissions, from their stored sums, and pending
 * ones that are due, net of reversals and corrections. The largest first, without affiliates whose net is zero or less.
 */
export async function previewPayouts(
  sql: Sql,
  appId: AppId,
  asOf: number,
  limit = PAYOUT_EARNINGS_LIMIT,
): Promise<PreviewRow[]> {
  return await sql<PreviewRow>`
    with payable as (
      select scope_id as affiliate_id, matured_cents as cents, matured_count as items
        from rollup_totals
       where app_id = ${appId} and scope = 'affiliate' and (matured_count <> 0 or matured_cents <> 0)
      union all
      select affiliate_id, amount_cents, 1 from commissions
       where app_id = ${appId} and status = 'pending' and due_at <= ${instant(asOf)}
    ), nets as (
      select affiliate_id, sum(cents) as cents, sum(items)::bigint as items
        from payable group by affiliate_id having sum(cents) > 0
    )
    select a.id as affiliate_id, a.name as affiliate_name, n.items as count, n.cents::float8 as total_cents,
           n.items > ${limit}::bigint as more_remains
      from nets n join affiliates a on a.id = n.affiliate_id
     order by n.cents desc, a.id`;
}

/** Number of rows of each kind that the preview of an earlier instant examines at most. */
const EARLIER_PREVIEW_EXAMINES = 100_000;

/**
 * Returns what was owed at `asOf`, which is not in the future: commissions that existed and were due then, and that no
 * payout had paid yet. Ledger rows are only appended and their status has no history, so it starts from what is matured
 * now, takes away what became owed later, and adds what later payouts paid. Returns undefined if that means to examine
 * more than `examines` payouts or commissions.
 *
 * The parts of the statement: `later` became owed after `asOf` and is still matured; `overdue` was due and is still
 * pending; `payouts_since` and `paid_since` are later payouts and the part of their items that was owed.
 */
export async function previewEarlierPayouts(
  sql: Sql,
  appId: AppId,
  asOf: number,
  examines = EARLIER_PREVIEW_EXAMINES,
): Promise<PreviewRow[] | undefined> {
  const at = sql.fragment`${instant(asOf)}::timestamptz`;
  const rows = await sql<PreviewRow & { readonly isTooMuch: boolean }>`
    with later as materialized (
      select affiliate_id, amount_cents from commissions
       where app_id = ${appId} and status = 'matured' and greatest(due_at, created_at) > ${at} limit ${examines + 1}
    ), overdue as materialized (
      select affiliate_id, amount_cents from commissions
       where app_id = ${appId} and status = 'pending' and due_at <= ${at} and created_at <= ${at} limit ${examines + 1}
    ), payouts_since as materialized (
      select id from payouts where app_id = ${appId} and created_at > ${at} order by created_at desc, id desc limit ${examines + 1}
    ), paid_since as materialized (
      select c.affiliate_id, c.amount_cents
        from payouts_since p
       cross join lateral (
         select c.affiliate_id, c.amount_cents from commissions c
          where c.payout_id = p.id and greatest(c.due_at, c.created_at) <= ${at} offset 0) c
       limit ${examines + 1}
    ), counted as (
      select greatest((select count(*) from later), (select count(*) from overdue), (select count(*) from payouts_since),
                      (select count(*) from paid_since)) > ${examines}::bigint as is_too_much
    ), owed as (
      select scope_id as affiliate_id, matured_cents as cents, matured_count as items
        from rollup_totals
       where app_id = ${appId} and scope = 'affiliate' and (matured_count <> 0 or matured_cents <> 0)
      union all select affiliate_id, -amount_cents, -1 from later
      union all select affiliate_id, amount_cents, 1 from overdue
      union all select affiliate_id, amount_cents, 1 from paid_since
    ), nets as (
      select affiliate_id, sum(cents) as cents, sum(items)::bigint as items
        from owed group by affiliate_id having sum(cents) > 0
    )
    select a.id as affiliate_id, a.name as affiliate_name, n.items as count, n.cents::float8 as total_cents,
           n.items > ${PAYOUT_EARNINGS_LIMIT}::bigint as more_remains, false as is_too_much
      from nets n join affiliates a on a.id = n.affiliate_id, counted
     where not counted.is_too_much
    union all
    select '', '', 0, 0, false, true from counted where is_too_much
     order by total_cents desc, affiliate_id`;
  return rows[0]?.isTooMuch === true ? undefined : rows;
}
