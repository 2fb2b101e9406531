import * as z from 'zod';
import { listAffiliatesByEarnings } from '../../db/affiliate-lists.ts';
import { ALL_COMMISSIONS, listCommissions } from '../../db/commissions.ts';
import { listTopLinks } from '../../db/links.ts';
import { readAffiliateTotals, readAppTotals, readHeldDates } from '../../db/overviews.ts';
import type { EarningTotals, Funnel } from '../../db/overviews.ts';
import { findMoneyOfRows } from '../../db/payout-transfers.ts';
import { readDueTotals } from '../../db/payout-lists.ts';
import { foundOrThrow } from '../errors.ts';
import { ATTRIBUTED_REVENUE, cents, count, epochMs, funnelCounts, orNull } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { affiliateRow, presentAffiliateRow } from './affiliates.ts';
import { commission, commissionPresenter } from './commissions.ts';
import { linkPresenter, linkRow } from './links.ts';

const TOP = 10;
const RECENT_COMMISSIONS = 20;
const TOP_LINKS_OF_AFFILIATE = 50;

export const funnel = z
  .object({
    ...funnelCounts,
    paid: count('Users with at least one attributed payment.'),
  })
  .meta({ id: 'Funnel', description: 'Counts from click to payment, of all time.' });

export const nextDueAt = orNull(
  epochMs('When the next part of the held commissions becomes due. What a refund has taken back is no part.'),
  'Null if nothing is held, or only deductions are.',
);

export const earnings = z
  .object({
    pending: cents('In the hold period.'),
    matured: cents('Due, and not paid yet.'),
    paid: cents('In payouts.'),
    lifetime: cents('The sum of the other three.'),
  })
  .meta({ id: 'Earnings', description: 'US cents, net of reversals and corrections.' });

const appOverview = z
  .object({
    funnel,
    revenueCents: cents(ATTRIBUTED_REVENUE),
    commissions: earnings,
    due: z
      .object({
        payees: count('The number of affiliates whom exports would pay now.'),
        payableCents: cents('What exports would pay now, as in the payout preview.'),
        negativeCents: cents(
          'The negative balances of other affiliates, which no export pays: zero or less.',
        ),
      })
      .describe('What can be paid. `commissions.matured` is net of negative balances; this is not.'),
    affiliates: z.array(affiliateRow).describe('The ten affiliates that earned most.'),
    links: z.array(linkRow).describe('The ten links with the most clicks.'),
    recentCommissions: z.array(commission).describe('The latest twenty commissions.'),
  })
  .meta({
    id: 'AppOverview',
    description: "An app's totals, top affiliates, top links and latest commissions.",
  });

const affiliateOverview = z
  .object({
    funnel,
    earnings,
    links: z.array(linkRow).describe('The fifty links with the most clicks.'),
    nextDueAt,
    nextPayoutAt: orNull(
      epochMs('The earliest `dueAt` of an unpaid earning or bonus: in the past while one is due.'),
      'Null if there is none.',
    ),
    carriedBalanceCents: cents('The negative balance that the next payout deducts: zero or less.'),
  })
  .meta({ id: 'AffiliateOverview', description: "An affiliate's totals, links and next payout." });

export function presentFunnel({ clicks, installs, identified, paidUsers }: Funnel) {
  return { clicks, installs, identified, paid: paidUsers };
}

export function presentEarnings({ pendingCents, maturedCents, paidCents, lifetimeCents }: EarningTotals) {
  return { pending: pendingCents, matured: maturedCents, paid: paidCents, lifetime: lifetimeCents };
}

export const overviewRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/overview',
    caller: accountApp('read'),
    operationId: 'getAppOverview',
    summary: "Retrieves an app's all-time totals, top affiliates, top links and latest commissions.",
    response: { status: 200, schema: appOverview },
    handler: async ({ deps, app, now }) => {
      const [totals, due, affiliates, links, commissions] = await Promise.all([
        readAppTotals(deps.sql, app.id, now),
        readDueTotals(deps.sql, app.id, now),
        listAffiliatesByEarnings(deps.sql, app.id, { status: null, text: null }, null, TOP),
        listTopLinks(deps.sql, app.id, null, TOP),
        listCommissions(deps.sql, app.id, ALL_COMMISSIONS, null, RECENT_COMMISSIONS),
      ]);
      const money = await findMoneyOfRows(deps.sql, commissions.rows);
      return {
        funnel: presentFunnel(totals),
        revenueCents: totals.revenueCents,
        commissions: presentEarnings(totals),
        due: { payees: due.payees, payableCents: due.payableCents, negativeCents: due.negativeCents },
        affiliates: affiliates.rows.map(presentAffiliateRow),
        links: links.map(linkPresenter(deps, app).row),
        recentCommissions: commissions.rows.map(commissionPresenter(money)),
      };
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/overview',
    caller: accountApp('read'),
    operationId: 'getAffiliateOverview',
    summary: "Retrieves an affiliate's all-time totals, links and next payout.",
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: affiliateOverview },
    handler: async ({ deps, app, ids, now }) => {
      const [found, held, links] = await Promise.all([
        readAffiliateTotals(deps.sql, app.id, ids.affiliateId, now),
        readHeldDates(deps.sql, app.id, ids.affiliateId, now),
        listTopLinks(deps.sql, app.id, ids.affiliateId, TOP_LINKS_OF_AFFILIATE),
      ]);
      const totals = foundOrThrow(found);
      return {
        funnel: presentFunnel(totals),
        earnings: presentEarnings(totals),
        links: links.map(linkPresenter(deps, app).row),
        nextDueAt: held.nextDueAt,
        nextPayoutAt: totals.nextPayoutAt,
        carriedBalanceCents: totals.carriedBalanceCents,
      };
    },
  }),
];
