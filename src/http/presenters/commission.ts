import type { CommissionListRow } from '../../db/commissions.ts';

/** A row of the ledger, as it leaves. */
export function presentCommission(row: CommissionListRow) {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    linkId: row.linkId,
    eventId: row.eventId,
    kind: row.kind,
    reversesCommissionId: row.reversesCommissionId,
    status: row.status,
    rateBps: row.rateBps,
    baseCents: row.baseCents,
    amountCents: row.amountCents,
    currency: 'USD' as const,
    source: row.source,
    customerUserId: row.customerUserId,
    matchMethod: row.matchMethod,
    occurredAt: row.occurredAt,
    dueAt: row.dueAt,
    maturedAt: row.maturedAt,
    paidAt: row.paidAt,
    payoutId: row.payoutId,
    createdAt: row.createdAt,
  };
}
