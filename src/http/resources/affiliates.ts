import * as z from 'zod';
import {
  createAffiliates,
  listAffiliatesByCreated,
  listAffiliatesByEmail,
  listAffiliatesByName,
  listTopEarners,
  updateAffiliate,
} from '../../db/affiliates.ts';
import type { Affiliate, AffiliateListRow } from '../../db/affiliates.ts';
import { AFFILIATE_STATUSES } from '../../domain/attribution.ts';
import { bulkOf, bulkResponse, presentBulk } from '../bulk.ts';
import { ApiError, foundOrThrow, invalidField } from '../errors.ts';
import { cents, count, epochMs, idOf, label, rateBps, textField } from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import { decodeCursor, nameKey, pageOf, pageQuery, presentPage, timeKey } from '../pagination.ts';
import { appRoute } from '../route.ts';

const name = label.meta({ examples: ['First creator'] });
const email = z
  .email()
  .max(320)
  .meta({ examples: ['creator@example.com'] });
const status = z.enum(AFFILIATE_STATUSES);

const affiliate = z.object({
  id: idOf('affiliate'),
  name: textField('First creator'),
  email: textField('creator@example.com').nullable(),
  status,
  defaultCommissionRateBps: rateBps.nullable(),
  createdAt: epochMs,
});

/** An affiliate in a list, with its totals. */
export const affiliateRow = affiliate.extend({ clicks: count, installs: count, commissionCents: cents });

const newAffiliate = z.strictObject({
  name,
  email: email.nullish(),
  defaultCommissionRateBps: rateBps.nullish(),
});

const affiliatePatch = z.strictObject({
  name: name.optional(),
  email: email.nullable().optional(),
  status: status.optional(),
  defaultCommissionRateBps: rateBps.nullable().optional(),
});

const affiliatesQuery = z.object({
  ...pageQuery,
  status: status.optional(),
  email: email.meta({ description: 'Ignores case. Takes no other `sort` than `created`.' }).optional(),
  sort: z.enum(['created', 'name', 'earnings']).default('created'),
});

function presentAffiliate(row: Affiliate) {
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    status: row.status,
    defaultCommissionRateBps: row.defaultCommissionRateBps,
    createdAt: row.createdAt,
  };
}

export function presentAffiliateRow(row: AffiliateListRow) {
  const { clicks, installs, commissionCents } = row;
  return { ...presentAffiliate(row), clicks, installs, commissionCents };
}

function rowOf(idGenerator: IdGenerator, fields: z.output<typeof newAffiliate>) {
  return {
    id: idGenerator.id('affiliate'),
    name: fields.name,
    email: fields.email ?? null,
    defaultCommissionRateBps: fields.defaultCommissionRateBps ?? null,
  };
}

export const affiliateRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/affiliates',
    permission: 'read',
    operationId: 'listAffiliates',
    summary: 'Lists affiliates with their clicks, installs and commissions.',
    description: '`sort=earnings` returns one page with the top `limit` affiliates and takes no `cursor`.',
    query: affiliatesQuery,
    response: { status: 200, schema: pageOf(affiliateRow) },
    handler: async ({ deps, app, query }) => {
      const { limit, cursor, sort } = query;
      const filter = { status: query.status ?? null };
      const address = query.email?.toLowerCase() ?? null;
      const key = { list: 'affiliates', appId: app.id, filters: { ...filter, email: address, sort } };
      if (address !== null) {
        if (sort !== 'created') throw invalidField('sort', 'Must be created if `email` is given.');
        const after = decodeCursor(key, timeKey, cursor);
        const page = await listAffiliatesByEmail(
          deps.sql,
          app.id,
          { ...filter, email: address },
          after,
          limit,
        );
        return presentPage(key, page, presentAffiliateRow);
      }
      switch (sort) {
        case 'created': {
          const after = decodeCursor(key, timeKey, cursor);
          const page = await listAffiliatesByCreated(deps.sql, app.id, filter, after, limit);
          return presentPage(key, page, presentAffiliateRow);
        }
        case 'name': {
          const after = decodeCursor(key, nameKey, cursor);
          const page = await listAffiliatesByName(deps.sql, app.id, filter, after, limit);
          return presentPage(key, page, presentAffiliateRow);
        }
        case 'earnings': {
          // This list has a single page, so no cursor belongs to it.
          if (cursor !== undefined) throw new ApiError('invalid_cursor');
          const rows = await listTopEarners(deps.sql, app.id, filter, limit);
          return { items: rows.map(presentAffiliateRow), nextCursor: null };
        }
      }
    },
  }),

  appRoute({
    method: 'POST',
    path: '/apps/:appId/affiliates',
    permission: 'write',
    operationId: 'createAffiliate',
    summary: 'Creates an affiliate.',
    body: newAffiliate,
    response: { status: 201, schema: affiliate },
    handler: async ({ deps, app, idGenerator, body }) => {
      const [created] = await createAffiliates(deps.sql, app.id, [rowOf(idGenerator, body)]);
      return presentAffiliate(foundOrThrow(created));
    },
  }),

  appRoute({
    method: 'POST',
    path: '/apps/:appId/affiliates/bulk',
    permission: 'write',
    operationId: 'createAffiliates',
    summary: 'Creates up to 100 affiliates.',
    description:
      'An invalid row rejects the whole call with a 400, and `errors[].path` names the row. `failed` is always empty.',
    body: bulkOf(newAffiliate),
    response: { status: 200, schema: bulkResponse(affiliate, []) },
    handler: async ({ deps, app, idGenerator, body }) => {
      const rows = body.rows.map((row) => rowOf(idGenerator, row));
      return presentBulk(await createAffiliates(deps.sql, app.id, rows), presentAffiliate, {});
    },
  }),

  appRoute({
    method: 'PATCH',
    path: '/apps/:appId/affiliates/:affiliateId',
    permission: 'write',
    operationId: 'updateAffiliate',
    summary: 'Updates an affiliate.',
    description: 'Existing commissions do not change.',
    ids: { affiliateId: 'affiliate' },
    body: affiliatePatch,
    response: { status: 200, schema: affiliate },
    handler: async ({ deps, app, ids, body }) =>
      presentAffiliate(foundOrThrow(await updateAffiliate(deps.sql, app.id, ids.affiliateId, body))),
  }),
];
