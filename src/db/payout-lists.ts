import type { AffiliateId, AppId, KeyId, PayoutId } from '../domain/ids.ts';
import { PAYOUT_CREDITS_LIMIT } from '../domain/payout.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

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
  const rows = await sql<PayoutListRow & Position<number>>`
    select ${PAYOUT_COLUMNS(sql)}
      from (select id, affiliate_id, affiliate_name, item_count, total_cents, created_at, encode(csv_sha256, 'hex') as csv_sha256,
                   (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from payouts
             where app_id = ${appId} ${ofAffiliate} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) p
      ${withProofAndKey(sql)}
     order by p.sort_key desc, p.id desc`;
  return pageOf(rows, limit);
}

/** What exports would pay all affiliates of an app now, and what they would not. */
export interface DueTotals {
  /** The number of affiliates with a positive net, and the sum of their nets. */
  readonly payees: number;
  readonly payableCents: number;
  /** The sum of the negative nets, which later earnings have to outweigh: zero or less. */
  readonly negativeCents: number;
}

/** What is due at `asOf`, by affiliate or of one: matured commissions, from their stored sums, and pending ones that are due. */
export const payableParts = (
  sql: Statements,
  appId: AppId,
  asOf: number,
  affiliateId: AffiliateId | null = null,
) => sql.fragment`
  select scope_id as affiliate_id, matured_cents as cents, matured_count as items
    from rollup_totals
   where app_id = ${appId} and scope = 'affiliate' and (matured_count <> 0 or matured_cents <> 0)
         ${affiliateId === null ? sql.fragment`` : sql.fragment`and scope_id = ${affiliateId}`}
  union all
  select affiliate_id, amount_cents, 1 from commissions
   where app_id = ${appId} and status = 'pending' and due_at <= ${instant(asOf)}
         ${affiliateId === null ? sql.fragment`` : sql.fragment`and affiliate_id = ${affiliateId}`}`;

/** Returns the sums of what is due at `asOf`, negative balances apart, without creators whose payouts are blocked. */
export async function readDueTotals(sql: Sql, appId: AppId, asOf: number): Promise<DueTotals> {
  return await sql.one<DueTotals>`
    with nets as (
      select sum(cents) as cents from (${payableParts(sql, appId, asOf)}) p group by affiliate_id having not are_payouts_blocked(affiliate_id)
    )
    select count(*) filter (where cents > 0)::int as payees,
           coalesce(sum(cents) filter (where cents > 0), 0)::float8 as payable_cents,
           coalesce(sum(cents) filter (where cents < 0), 0)::float8 as negative_cents
      from nets`;
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
 * Returns what exports at `asOf` would pay each affiliate, or one: matured commissions, from their stored sums, and pending
 * ones that are due, net of reversals and corrections. The largest first, without affiliates whose net is zero or less, or whose payouts
 * are blocked.
 */
export async function previewPayouts(
  sql: Sql,
  appId: AppId,
  asOf: number,
  affiliateId: AffiliateId | null = null,
  limit = PAYOUT_CREDITS_LIMIT,
): Promise<PreviewRow[]> {
  return await sql<PreviewRow>`
    with payable as (${payableParts(sql, appId, asOf, affiliateId)}), nets as (
      select affiliate_id, sum(cents) as cents, sum(items)::bigint as items
        from payable group by affiliate_id having sum(cents) > 0 and not are_payouts_blocked(affiliate_id)
    )
    select a.id as affiliate_id, a.name as affiliate_name, n.items as count, n.cents::float8 as total_cents,
           n.items > ${limit}::bigint as more_remains
      from nets n join affiliates a on a.id = n.affiliate_id
     order by n.cents desc, a.id`;
}

/** Why an export at present would pay an affiliate nothing. */
export type NotPayableReason = 'held' | 'reversed' | 'negative_balance' | 'payouts_blocked';

export interface NotPayableRow {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly reason: NotPayableReason;
  /** The net of what is due: zero or less, unless payouts are blocked. */
  readonly balanceCents: number;
  /** The net of what is in the hold period. */
  readonly heldCents: number;
  /** When the next commission of them is due. Null if none is held. */
  readonly nextDueAt: number | null;
}

export interface NotPayable {
  readonly rows: readonly NotPayableRow[];
  /** Whether there are more. */
  readonly isTruncated: boolean;
}

/** Number of affiliates that are returned at most. */
const MOST_NOT_PAYABLE = 100;
/** Number of commissions in the hold period that are read at most, those that are due next. */
const EXAMINED_HELD = 4_000;

/**
 * Returns affiliates whom an export at `asOf` would pay nothing although the ledger has unpaid commissions of theirs, and why:
 * first those whose payouts are blocked, then those with a negative balance, then those whose next commission is due first.
 * Reads at most the next 4,000 held commissions.
 *
 * The parts of the statement: `nets` is what is due, `held` the commissions in the hold period that are due next, `waiting` the
 * affiliates of both without a positive net or with blocked payouts, whose held sum is what they earned and is neither due nor paid.
 */
export async function listNotPayable(
  sql: Sql,
  appId: AppId,
  asOf: number,
  { most = MOST_NOT_PAYABLE, examined = EXAMINED_HELD } = {},
): Promise<NotPayable> {
  const { rows, isCut } = await sql.one<{ readonly rows: readonly NotPayableRow[]; readonly isCut: boolean }>`
    with nets as materialized (
      -- What a payout has just paid is a stored sum and its opposite in the tail.
      select affiliate_id, sum(cents) as cents from (${payableParts(sql, appId, asOf)}) p
       group by affiliate_id having sum(cents) <> 0 or sum(items) > 0
    ), held as materialized (
      select affiliate_id, due_at from commissions
       where app_id = ${appId} and status = 'pending' and due_at > ${instant(asOf)} order by due_at limit ${examined}
    ), waiting as (
      select affiliate_id::text as affiliate_id, max(cents) as cents, min(due_at) as next_due_at
        from (select affiliate_id::text as affiliate_id, cents, null::timestamptz as due_at from nets
              union all select affiliate_id::text, null, due_at from held) x
       group by affiliate_id::text having coalesce(max(cents), 0) <= 0 or are_payouts_blocked(affiliate_id::text)
    ), chosen as (
      select * from waiting order by coalesce(cents, 0) <= 0, least(coalesce(cents, 0), 0), next_due_at nulls first, affiliate_id limit ${most + 1}
    )
    select coalesce((
             select jsonb_agg(jsonb_build_object(
                      'affiliateId', a.id, 'affiliateName', a.name,
                      'reason', case when are_payouts_blocked(c.affiliate_id) then 'payouts_blocked' when c.cents < 0 then 'negative_balance' when c.next_due_at is null then 'reversed' else 'held' end,
                      'balanceCents', coalesce(c.cents, 0),
                      'heldCents', coalesce((select sum(t.commission_cents - t.paid_cents) from rollup_totals t
                                              where t.app_id = ${appId} and t.scope = 'affiliate' and t.scope_id = c.affiliate_id)
                                            - coalesce(c.cents, 0), 0),
                      'nextDueAt', epoch_ms(c.next_due_at))
                      order by coalesce(c.cents, 0) <= 0, least(coalesce(c.cents, 0), 0), c.next_due_at nulls first, a.id)
               from chosen c cross join lateral (select * from affiliates a where a.id = c.affiliate_id offset 0) a), '[]') as rows,
           (select count(*) from held) = ${examined}::bigint as is_cut`;
  return { rows: rows.slice(0, most), isTruncated: rows.length > most || isCut };
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
        from owed group by affiliate_id having sum(cents) > 0 and not are_payouts_blocked(affiliate_id)
    )
    select a.id as affiliate_id, a.name as affiliate_name, n.items as count, n.cents::float8 as total_cents,
           n.items > ${PAYOUT_CREDITS_LIMIT}::bigint as more_remains, false as is_too_much
      from nets n join affiliates a on a.id = n.affiliate_id, counted
     where not counted.is_too_much
    union all
    select '', '', 0, 0, false, true from counted where is_too_much
     order by total_cents desc, affiliate_id`;
  return rows[0]?.isTooMuch === true ? undefined : rows;
}
