import type { AttributionMethod } from '../domain/attribution.ts';
import type { EntryCategory, EntryKind } from '../domain/entry.ts';
import type { CommissionKind as PaymentCommissionKind } from '../domain/payment-snapshot.ts';
import type { AffiliateId, AppId, CommissionId, EntryId, EventId, LinkId, PayoutId } from '../domain/ids.ts';
import type { ShownPolicy } from '../domain/policy.ts';
import type { ProviderName } from '../providers/index.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { shownPolicyOf } from './policy-snapshot.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

export const COMMISSION_STATUSES = ['pending', 'matured', 'paid'] as const;
export type CommissionStatus = (typeof COMMISSION_STATUSES)[number];

/** Why a correction was appended. */
export const CORRECTION_REASONS = ['earned_under_another_reference'] as const;
export type CorrectionReason = (typeof CORRECTION_REASONS)[number];

/** What a commission results from: a payment, or an entry. */
export type CommissionKind = PaymentCommissionKind | EntryKind;

/** A row of the ledger. What belongs to a payment is null for an entry. */
export interface CommissionListRow {
  readonly id: CommissionId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly linkId: LinkId | null;
  readonly eventId: EventId | null;
  readonly kind: CommissionKind;
  /** The earning that a reversal or a correction takes back. */
  readonly reversesCommissionId: CommissionId | null;
  /** Null unless the row is a correction. */
  readonly reason: CorrectionReason | null;
  readonly status: CommissionStatus;
  readonly rateBps: number;
  readonly baseCents: number;
  readonly amountCents: number;
  readonly source: ProviderName | null;
  readonly customerUserId: string | null;
  readonly matchMethod: AttributionMethod | null;
  readonly occurredAt: number;
  readonly dueAt: number;
  readonly maturedAt: number | null;
  readonly paidAt: number | null;
  readonly payoutId: PayoutId | null;
  readonly createdAt: number;
  /** The policy that the rate is of. Null for another rate. */
  readonly policy: ShownPolicy | null;
  /** What a person wrote. Null for what results from a payment. */
  readonly entry: CommissionEntry | null;
}

export interface CommissionEntry {
  readonly id: EntryId;
  readonly category: EntryCategory;
  readonly reason: string;
  /** The entry that this one undoes. */
  readonly undoesEntryId: EntryId | null;
}

/** The filters of a list of commissions. Null selects all rows. The purchase is in `from ≤ t < to`. */
export interface CommissionFilter {
  readonly affiliateId: AffiliateId | null;
  readonly linkId: LinkId | null;
  readonly payoutId: PayoutId | null;
  readonly status: CommissionStatus | null;
  readonly kind: CommissionKind | null;
  readonly source: ProviderName | null;
  readonly customerUserId: string | null;
  readonly from: number | null;
  readonly to: number | null;
}

/** Selects all commissions of an app. */
export const ALL_COMMISSIONS: CommissionFilter = {
  affiliateId: null,
  linkId: null,
  payoutId: null,
  status: null,
  kind: null,
  source: null,
  customerUserId: null,
  from: null,
  to: null,
};

/** The filters that an index selects in the order of the list. The page examines the rows of the index for the others. */
function indexedFilters(filter: CommissionFilter): readonly (keyof CommissionFilter)[] {
  if (filter.payoutId !== null) return ['payoutId'];
  if (filter.customerUserId !== null) return ['customerUserId', 'from', 'to'];
  if (filter.linkId !== null) return ['linkId', 'from', 'to'];
  if (filter.affiliateId !== null) return ['affiliateId', 'status', 'from', 'to'];
  // Few rows are no earnings, and the index has only these.
  if (filter.kind !== null && filter.kind !== 'earning') return ['kind', 'from', 'to'];
  // An index by source would not be used: a generic plan expects that each source has most of the rows.
  return ['status', 'from', 'to'];
}

function conditions(sql: Sql, filter: CommissionFilter) {
  return {
    affiliateId: sql.fragment`and c.affiliate_id = ${filter.affiliateId}`,
    linkId: sql.fragment`and c.link_id = ${filter.linkId}`,
    payoutId: sql.fragment`and c.payout_id = ${filter.payoutId}`,
    status: sql.fragment`and c.status = ${filter.status}`,
    kind: sql.fragment`and c.kind = ${filter.kind} ${filter.kind === 'earning' ? sql.fragment`` : sql.fragment`and c.kind <> 'earning'`}`,
    source: sql.fragment`and c.source = ${filter.source}`,
    customerUserId: sql.fragment`and c.customer_user_id = ${filter.customerUserId}`,
    from: sql.fragment`and c.occurred_at >= ${instant(filter.from ?? 0)}`,
    to: sql.fragment`and c.occurred_at < ${instant(filter.to ?? 0)}`,
  };
}

/** How a list reads the rows that a filter selects. */
interface Walk {
  /** Selects rows `c` by an index, without a limit, with their number as `examined`. */
  readonly rows: Fragment;
  /** The order of the list. */
  readonly order: Fragment;
  /** What the index does not select. Null if it selects all. */
  readonly condition: Fragment | null;
}

/** Returns how the rows of a filter are read after a position of the list. */
function walkOf(
  sql: Sql,
  appId: AppId,
  filter: CommissionFilter,
  after: Position<number> | null = null,
): Walk {
  const all = conditions(sql, filter);
  const given = (Object.keys(all) as (keyof CommissionFilter)[]).filter((name) => filter[name] !== null);
  const indexed = indexedFilters(filter);
  const joined = (names: readonly (keyof CommissionFilter)[]) =>
    names.reduce((text, name) => sql.fragment`${text} ${all[name]}`, sql.fragment``);
  const others = given.filter((name) => !indexed.includes(name));
  const condition = others.length === 0 ? null : sql.fragment`true ${joined(others)}`;
  if (filter.payoutId !== null) {
    const afterItem =
      after === null
        ? sql.fragment``
        : sql.fragment`and i.position < (select x.position from payout_items x where x.commission_id = ${after.id})`;
    // The items of a payout are numbered in the order of the list.
    const rows = sql.fragment`
      select c.*, row_number() over (order by i.position desc) as examined
        from payout_items i
       cross join lateral (select * from commissions x where x.id = i.commission_id offset 0) c
       where i.app_id = ${appId} and i.payout_id = ${filter.payoutId} ${afterItem}
       order by i.position desc`;
    return { rows, order: sql.fragment`examined`, condition };
  }
  // Purchase times are whole milliseconds, so the positions are too.
  const afterTime =
    after === null
      ? sql.fragment``
      : sql.fragment`and (c.occurred_at, c.id) < (${instant(after.sortKey)}, ${after.id})`;
  const rows = sql.fragment`
    select c.*, row_number() over (order by c.occurred_at desc, c.id desc) as examined
      from commissions c
     where c.app_id = ${appId} ${joined(given.filter((name) => indexed.includes(name)))} ${afterTime}
     order by c.occurred_at desc, c.id desc`;
  return { rows, order: sql.fragment`occurred_at desc, id desc`, condition };
}

/**
 * Returns a page of an app's commissions, the latest purchase first. A page of a combination of filters without an index
 * examines at most `examines` rows and may have fewer than `limit`.
 */
export async function listCommissions(
  sql: Sql,
  appId: AppId,
  filter: CommissionFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<CommissionListRow, number>> {
  const walk = walkOf(sql, appId, filter, after);
  const rows = await sql<CommissionListRow & Position<number> & Examined>`
    with walked as (
      ${walk.rows} limit ${walk.condition === null ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked c`, walk.condition, walk.order, { limit, examines })}
    )
    select c.id, c.affiliate_id, (select a.name from affiliates a where a.id = c.affiliate_id) as affiliate_name, c.link_id,
           c.event_id, c.kind, c.reverses_commission_id, c.reason, c.status,
           c.rate_bps, c.base_cents, c.amount_cents, c.source,
           c.customer_user_id, c.match_method, c.occurred_at,
           c.due_at, c.matured_at, c.paid_at, c.payout_id,
           c.created_at,
           (select jsonb_build_object('id', n.id, 'category', n.category, 'reason', n.reason, 'undoesEntryId', n.undoes_entry_id)
              from entries n where n.id = c.entry_id) as entry,
           ${shownPolicyOf(sql)} as policy, epoch_ms(c.occurred_at) as sort_key, c.is_match, c.examined
      from p c
     order by c.examined`;
  return walk.condition === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/** Number of rows that a sum adds up. One more is read, to see whether there are more. */
const SUMMED_ROWS = PAGE_EXAMINES - 1;

/** Returns the sum of the commissions that a filter selects, US cents. Undefined if more than `most` rows would be added up. */
export async function sumCommissions(
  sql: Sql,
  appId: AppId,
  filter: CommissionFilter,
  most = SUMMED_ROWS,
): Promise<number | undefined> {
  const { rows, condition } = walkOf(sql, appId, filter);
  const { cents, isAll } = await sql.one<{ cents: number; isAll: boolean }>`
    select coalesce(sum(c.amount_cents) filter (where ${condition ?? sql.fragment`true`}), 0)::bigint as cents,
           count(*) <= ${most} as is_all
      from (${rows} limit ${most + 1}) c`;
  return isAll ? cents : undefined;
}
