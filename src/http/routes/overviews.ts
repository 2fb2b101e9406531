import { listTopEarners } from '../../db/affiliates.ts';
import { listCommissions } from '../../db/commissions.ts';
import { listTopLinks } from '../../db/links.ts';
import { readAffiliateTotals, readAppTotals } from '../../db/overviews.ts';
import { foundOrThrow } from '../errors.ts';
import { linkPresenter } from '../presenters/link.ts';
import { presentAffiliateOverview, presentAppOverview } from '../presenters/overview.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/overviews.ts';

const TOP = 10;
const RECENT_COMMISSIONS = 20;
const LINKS_OF_CREATOR = 50;

export const overviewRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/overview',
    auth: 'account',
    permission: 'read',
    operationId: 'getAppOverview',
    summary:
      'Shows what an app had in all time, who and what brought most of it, and the latest commissions.',
    response: { status: 200, schema: schemas.appOverview },
    handler: async ({ deps, app }) => {
      const everything = { affiliateId: null, status: null, from: null, to: null };
      const [totals, affiliates, links, commissions] = await Promise.all([
        readAppTotals(deps.sql, app.id),
        listTopEarners(deps.sql, app.id, { status: null }, TOP),
        listTopLinks(deps.sql, app.id, null, TOP),
        listCommissions(deps.sql, app.id, everything, null, RECENT_COMMISSIONS),
      ]);
      return presentAppOverview(totals, affiliates, links, commissions.rows, linkPresenter(deps, app));
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/overview',
    auth: 'account',
    permission: 'read',
    operationId: 'getAffiliateOverview',
    summary: 'Shows what an affiliate had in all time, their links, and what comes next.',
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: schemas.affiliateOverview },
    handler: async ({ deps, app, ids, now }) => {
      const [totals, links] = await Promise.all([
        readAffiliateTotals(deps.sql, app.id, ids.affiliateId, now),
        listTopLinks(deps.sql, app.id, ids.affiliateId, LINKS_OF_CREATOR),
      ]);
      return presentAffiliateOverview(foundOrThrow(totals), links, linkPresenter(deps, app));
    },
  }),
];
