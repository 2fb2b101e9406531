import type { AffiliateListRow } from '../../db/affiliates.ts';
import type { CommissionListRow } from '../../db/commissions.ts';
import type { LinkListRow } from '../../db/links.ts';
import type { AffiliateTotals, AppTotals, EarningTotals, Funnel } from '../../db/overviews.ts';
import { presentAffiliateRow } from './affiliate.ts';
import { presentCommission } from './commission.ts';
import type { LinkPresenter } from './link.ts';

function presentFunnel({ clicks, installs, identified, paidUsers }: Funnel) {
  return { clicks, installs, identified, paid: paidUsers };
}

function presentEarnings({ pendingCents, maturedCents, paidCents, lifetimeCents }: EarningTotals) {
  return { pending: pendingCents, matured: maturedCents, paid: paidCents, lifetime: lifetimeCents };
}

/** The founder's view of an app. */
export function presentAppOverview(
  totals: AppTotals,
  affiliates: readonly AffiliateListRow[],
  links: readonly LinkListRow[],
  recentCommissions: readonly CommissionListRow[],
  presentLink: LinkPresenter,
) {
  return {
    funnel: presentFunnel(totals),
    revenueCents: totals.revenueCents,
    commissions: presentEarnings(totals),
    affiliates: affiliates.map(presentAffiliateRow),
    links: links.map(presentLink.row),
    recentCommissions: recentCommissions.map(presentCommission),
  };
}

/** A creator's view of what came of their links. */
export function presentAffiliateOverview(
  totals: AffiliateTotals,
  links: readonly LinkListRow[],
  presentLink: LinkPresenter,
) {
  return {
    funnel: presentFunnel(totals),
    earnings: presentEarnings(totals),
    links: links.map(presentLink.row),
    nextPayoutAt: totals.nextPayoutAt,
    carriedBalanceCents: totals.carriedBalanceCents,
  };
}
