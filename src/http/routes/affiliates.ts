import {
  createAffiliate,
  listAffiliatesByCreated,
  listAffiliatesByName,
  listTopEarners,
  updateAffiliate,
} from '../../db/affiliates.ts';
import { decodeCursor, nameKey, presentPage, timeKey } from '../cursors.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { presentAffiliate, presentAffiliateRow } from '../presenters/affiliate.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/affiliates.ts';

export const affiliateRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates',
    auth: 'account',
    permission: 'read',
    summary: 'Lists affiliates with their clicks, installs and commissions.',
    query: schemas.affiliatesQuery,
    response: { status: 200, schema: schemas.affiliatesPage },
    handler: async ({ deps, app, query }) => {
      const { limit, cursor, sort } = query;
      const filter = { status: query.status ?? null };
      const key = { list: 'affiliates', appId: app.id, filters: { ...filter, sort } };
      switch (sort) {
        case 'created': {
          const after = decodeCursor(key, timeKey, cursor);
          return presentPage(
            key,
            await listAffiliatesByCreated(deps.sql, app.id, filter, after, limit),
            presentAffiliateRow,
          );
        }
        case 'name': {
          const after = decodeCursor(key, nameKey, cursor);
          return presentPage(
            key,
            await listAffiliatesByName(deps.sql, app.id, filter, after, limit),
            presentAffiliateRow,
          );
        }
        case 'earnings': {
          // There is one page only, so no cursor can be of this list.
          if (cursor !== undefined) throw new ApiError('invalid_cursor');
          const rows = await listTopEarners(deps.sql, app.id, filter, limit);
          return { items: rows.map(presentAffiliateRow), nextCursor: null };
        }
      }
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates',
    auth: 'account',
    permission: 'write',
    summary: 'Creates an affiliate.',
    body: schemas.newAffiliate,
    response: { status: 201, schema: schemas.affiliate },
    handler: async ({ deps, app, body }) =>
      presentAffiliate(
        await createAffiliate(deps.sql, app.id, {
          name: body.name,
          email: body.email ?? null,
          defaultCommissionRateBps: body.defaultCommissionRateBps ?? null,
        }),
      ),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/affiliates/:affiliateId',
    auth: 'account',
    permission: 'write',
    summary: 'Changes an affiliate. Existing commissions stay as they are.',
    ids: { affiliateId: 'affiliate' },
    body: schemas.affiliatePatch,
    response: { status: 200, schema: schemas.affiliate },
    handler: async ({ deps, app, ids, body }) =>
      presentAffiliate(foundOrThrow(await updateAffiliate(deps.sql, app.id, ids.affiliateId, body))),
  }),
];
