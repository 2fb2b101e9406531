import type { AffiliateId, AppId, PayoutId } from '../domain/ids.ts';
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
    select id, affiliate_id, affiliate_name, item_count, total_cents, created_at, encode(csv_sha256, 'hex') as csv_sha256,
           (extract(epoch from created_at) * 1000000)::bigint as sort_key
      from payouts
     where app_id = ${appId} ${ofAffiliate} ${from}
     order by created_at desc, id desc limit ${limit + 1}`;
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
        from rollups
       where app_id = ${appId} and scope = 'affiliate' and bucket_at = '-infinity' and shard = 0 and matured_count > 0
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
