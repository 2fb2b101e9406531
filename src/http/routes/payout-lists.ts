import { listPayouts, previewPayouts } from '../../db/payout-lists.ts';
import { decodeCursor, presentPage, timeKey } from '../cursors.ts';
import { presentPayout, presentPreview } from '../presenters/payout.ts';
import { route } from '../route.ts';
import { EMPTY_PAGE, filterId } from '../schemas/common.ts';
import * as schemas from '../schemas/payout-lists.ts';

export const payoutListRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/payouts',
    auth: 'account',
    permission: 'read',
    operationId: 'listPayouts',
    summary: 'Lists payouts, the latest first.',
    query: schemas.payoutsQuery,
    response: { status: 200, schema: schemas.payoutsPage },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'payouts', appId: app.id, filters: { affiliateId: query.affiliateId ?? null } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      return presentPage(
        key,
        await listPayouts(deps.sql, app.id, { affiliateId }, after, query.limit),
        presentPayout,
      );
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payouts/preview',
    auth: 'account',
    permission: 'read',
    operationId: 'previewPayouts',
    summary: 'Shows what exports would pay now. Writes nothing.',
    response: { status: 200, schema: schemas.payoutPreview },
    handler: async ({ deps, app, now }) => presentPreview(now, await previewPayouts(deps.sql, app.id, now)),
  }),
];
