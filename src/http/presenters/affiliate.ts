import type { Affiliate, AffiliateListRow } from '../../db/affiliates.ts';

/** An affiliate, as it leaves. */
export function presentAffiliate(affiliate: Affiliate) {
  const { id, name, email, status, defaultCommissionRateBps, createdAt } = affiliate;
  return { id, name, email, status, defaultCommissionRateBps, createdAt };
}

/** An affiliate in a list, with what came of it. */
export function presentAffiliateRow(row: AffiliateListRow) {
  const { clicks, installs, commissionCents } = row;
  return { ...presentAffiliate(row), clicks, installs, commissionCents };
}
