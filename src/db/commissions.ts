import type { MatchMethod } from '../domain/attribution.ts';
import type { CommissionKind } from '../domain/evaluate-payment.ts';
import type { AffiliateId, AppId, CommissionId, EventId, LinkId, PayoutId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import { pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export const COMMISSION_STATUSES = ['pending', 'matured', 'paid'] as const;
export type CommissionStatus = (typeof COMMISSION_STATUSES)[number];

/** Why a correction was appended. */
export const CORRECTION_REASONS = ['earned_under_another_reference'] as const;
export type CorrectionReason = (typeof CORRECTION_REASONS)[number];

export interface CommissionListRow {
  readonly id: CommissionId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly linkId: LinkId | null;
  readonly eventId: EventId;
  readonly kind: CommissionKind;
  /** The earning that a reversal or a correction takes back. */
  readonly reversesCommissionId: CommissionId | null;
  /** Null unless the row is a correction. */
  readonly reason: CorrectionReason | null;
  readonly status: CommissionStatus;
  readonly rateBps: number;
  readonly baseCents: number;
  readonly amountCents: number;
  readonly source: ProviderName;
  readonly customerUserId: string;
  readonly matchMethod: MatchMethod;
  readonly occurredAt: number;
  readonly dueAt: number;
  readonly maturedAt: number | null;
  readonly paidAt: number | null;
  readonly payoutId: PayoutId | null;
  readonly createdAt: number;
}

/** Returns a page of an app's commissions, the latest purchase first. The purchase is in `from ≤ t < to`. */
export async function listCommissions(
  sql: Sql,
  appId: AppId,
  filter: {
    readonly affiliateId: AffiliateId | null;
    readonly status: CommissionStatus | null;
    readonly from: number | null;
    readonly to: number | null;
  },
  after: Position<number> | null,
  limit: number,
): Promise<Page<CommissionListRow, number>> {
  const ofAffiliate =
    filter.affiliateId === null ? sql.fragment`` : sql.fragment`and c.affiliate_id = ${filter.affiliateId}`;
  const withStatus = filter.status === null ? sql.fragment`` : sql.fragment`and c.status = ${filter.status}`;
  const notBefore =
    filter.from === null ? sql.fragment`` : sql.fragment`and c.occurred_at >= ${instant(filter.from)}`;
  const before =
    filter.to === null ? sql.fragment`` : sql.fragment`and c.occurred_at < ${instant(filter.to)}`;
  // Purchase times are whole milliseconds, so the positions are too.
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (c.occurred_at, c.id) < (${instant(after.sortKey)}, ${after.id})`;
  const rows = await sql<CommissionListRow & Position<number>>`
    with p as (
      select * from commissions c
       where c.app_id = ${appId} ${ofAffiliate} ${withStatus} ${notBefore} ${before} ${from}
       order by c.occurred_at desc, c.id desc limit ${limit + 1}
    )
    select p.id, p.affiliate_id, (select a.name from affiliates a where a.id = p.affiliate_id) as affiliate_name, p.link_id,
           p.event_id, p.kind, p.reverses_commission_id, p.reason, p.status,
           p.rate_bps, p.base_cents, p.amount_cents, p.source,
           p.customer_user_id, p.match_method, p.occurred_at,
           p.due_at, p.matured_at, p.paid_at, p.payout_id,
           p.created_at, epoch_ms(p.occurred_at) as sort_key
      from p
     order by p.occurred_at desc, p.id desc`;
  return pageOf(rows, limit);
}
