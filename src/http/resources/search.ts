import * as z from 'zod';
import { searchAffiliates } from '../../db/affiliate-lists.ts';
import { searchLinks } from '../../db/links.ts';
import { label } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { affiliateRow, presentAffiliateRow } from './affiliates.ts';
import { linkPresenter, linkRow } from './links.ts';

const FOUND = 20;

const found = z
  .object({
    affiliates: z.array(affiliateRow).describe('At most twenty, by name.'),
    links: z.array(linkRow).describe('At most twenty, by slug.'),
  })
  .meta({ id: 'Found', description: 'The affiliates and links that match a text.' });

export const searchRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/search',
    caller: accountApp('read'),
    operationId: 'search',
    summary: 'Finds affiliates and links by a text.',
    description:
      'Affiliates match by the beginning of the e-mail address or `externalId`, by the id, and by any part of the name; in an app ' +
      'with more than 4,000 affiliates, some match only by the beginning of the name. Links match by the beginning of the ' +
      'slug or `externalId`, and by the id. Case does not matter, except in an `externalId`.',
    query: z.object({ q: label.meta({ description: 'The text.', examples: ['ada'] }) }),
    response: { status: 200, schema: found },
    handler: async ({ deps, app, query }) => {
      const [affiliates, links] = await Promise.all([
        searchAffiliates(deps.sql, app.id, query.q, FOUND),
        searchLinks(deps.sql, app.id, query.q, FOUND),
      ]);
      return {
        affiliates: affiliates.map(presentAffiliateRow),
        links: links.map(linkPresenter(deps, app).row),
      };
    },
  }),
];
