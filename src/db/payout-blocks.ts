import type { AccountId, AffiliateId, AppId, KeyId, PayoutBlockId } from '../domain/ids.ts';
import { isAffiliate } from './affiliates.ts';
import { acting } from './audit.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

export const PAYOUT_BLOCK_STATES = ['blocked', 'lifted'] as const;
export type PayoutBlockState = (typeof PAYOUT_BLOCK_STATES)[number];

/** A statement that the payouts of a creator are blocked, or not any more. */
export interface PayoutBlock {
  readonly id: PayoutBlockId;
  readonly affiliateId: AffiliateId;
  readonly state: PayoutBlockState;
  readonly reason: string;
  readonly createdAt: number;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
}

/** A block that is in force. */
export type CurrentBlock = Pick<PayoutBlock, 'reason'> & {
  /** Epoch ms. */
  readonly since: number;
};

export interface NewPayoutBlock {
  readonly id: PayoutBlockId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly state: PayoutBlockState;
  readonly reason: string;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
}

const columns = (sql: Sql) => sql.fragment`
  b.id, b.affiliate_id, b.state, b.reason, b.created_at, k.id as key_id, k.label as key_label, k.display as key_display`;

const withKey = (sql: Sql) => sql.fragment`
  cross join lateral (select * from account_keys x where x.id = b.key_id offset 0) k`;

/** The block in force of a creator, as JSON: a `CurrentBlock`. Null without one. */
export const currentBlock = (sql: Sql, affiliateId: Fragment): Fragment => sql.fragment`
  (select case state when 'blocked' then jsonb_build_object('reason', reason, 'since', epoch_ms(created_at)) end
     from payout_blocks where affiliate_id = ${affiliateId} order by position desc limit 1)`;

/** Whether the payouts of a creator are blocked. Under the lock of a settlement, this is so until its end. */
export async function arePayoutsBlocked(sql: Statements, affiliateId: AffiliateId): Promise<boolean> {
  const { blocked } = await sql.one<{
    blocked: boolean;
  }>`select are_payouts_blocked(${affiliateId}) as blocked`;
  return blocked;
}

/**
 * Blocks the payouts of a creator, or lifts the block. Waits for a settlement that is running: afterwards none pays. Returns the statement;
 * null if it is so already; undefined for an unknown creator. A second run with the same id changes nothing and returns the same.
 */
export async function addPayoutBlock(
  sql: Sql,
  block: NewPayoutBlock,
): Promise<PayoutBlock | null | undefined> {
  const { id, appId, affiliateId, state, reason, accountId, keyId } = block;
  await sql.forManyRows()`
    insert into payout_blocks (id, app_id, affiliate_id, position, reason, account_id, key_id)
    select ${id}::text, f.app_id, f.id, coalesce(l.position, 0) + 1, ${reason}::text, ${accountId}::text, ${keyId}::text
      from affiliates f
      left join lateral (
        select position, state from payout_blocks where affiliate_id = f.id order by position desc limit 1) l on true
     where f.app_id = ${appId} and f.id = ${affiliateId} and coalesce(l.state, 'lifted') <> ${state}::text and ${acting(sql)}
    on conflict do nothing`;
  const stored = await sql.maybe<PayoutBlock>`
    select ${columns(sql)} from payout_blocks b ${withKey(sql)} where b.app_id = ${appId} and b.id = ${id}`;
  if (stored !== undefined) return stored;
  return (await isAffiliate(sql, appId, affiliateId)) ? null : undefined;
}

/** Returns a page of what was stated about the payouts of a creator, the latest first. Undefined for an unknown creator. */
export async function listPayoutBlocks(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<PayoutBlock, number> | undefined> {
  const rows = await sql<PayoutBlock & Position<number>>`
    select ${columns(sql)}, b.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from payout_blocks
             where app_id = ${appId} and affiliate_id = ${affiliateId} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) b
      ${withKey(sql)}
     order by b.sort_key desc, b.id desc`;
  if (rows.length === 0 && !(await isAffiliate(sql, appId, affiliateId))) return undefined;
  return pageOf(rows, limit);
}
