import {
  createAffiliates,
  listAffiliatesByCreated,
  listAffiliatesByName,
  listTopEarners,
  updateAffiliate,
} from '../../db/affiliates.ts';
import type * as z from 'zod';
import { decodeCursor, nameKey, presentPage, timeKey } from '../cursors.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import type { IdGenerator } from '../id-generator.ts';
import { presentAffiliate, presentAffiliateRow } from '../presenters/affiliate.ts';
import { presentBulk } from '../presenters/bulk.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/affiliates.ts';

type AffiliateFields = z.output<typeof schemas.newAffiliate>;

function newAffiliate(idGenerator: IdGenerator, { name, email, defaultCommissionRateBps }: AffiliateFields) {
  return {
    id: idGenerator.id('affiliate'),
    name,
    email: email ?? null,
    defaultCommissionRateBps: defaultCommissionRateBps ?? null,
  };
}

export const affiliateRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates',
    auth: 'account',
    permission: 'read',
    operationId: 'listAffiliates',
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
    operationId: 'createAffiliate',
    summary: 'Creates an affiliate.',
    body: schemas.newAffiliate,
    response: { status: 201, schema: schemas.affiliate },
    handler: async ({ deps, app, idGenerator, body }) => {
      const [made] = await createAffiliates(deps.sql, app.id, [newAffiliate(idGenerator, body)]);
      return presentAffiliate(foundOrThrow(made));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/bulk',
    auth: 'account',
    permission: 'write',
    operationId: 'createAffiliates',
    summary: 'Creates up to 100 affiliates.',
    description:
      'A row that breaks the schema rejects the whole call (400, `errors[].path` names the row). Nothing about the ' +
      'state of an app refuses an affiliate, so `failed` is always empty.',
    body: schemas.newAffiliates,
    response: { status: 200, schema: schemas.createdAffiliates },
    handler: async ({ deps, app, idGenerator, body }) => {
      const rows = body.rows.map((row) => newAffiliate(idGenerator, row));
      return presentBulk(await createAffiliates(deps.sql, app.id, rows), presentAffiliate, {});
    },
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/affiliates/:affiliateId',
    auth: 'account',
    permission: 'write',
    operationId: 'updateAffiliate',
    summary: 'Changes an affiliate. Existing commissions stay as they are.',
    ids: { affiliateId: 'affiliate' },
    body: schemas.affiliatePatch,
    response: { status: 200, schema: schemas.affiliate },
    handler: async ({ deps, app, ids, body }) =>
      presentAffiliate(foundOrThrow(await updateAffiliate(deps.sql, app.id, ids.affiliateId, body))),
  }),
];
