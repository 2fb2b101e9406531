import * as z from 'zod';
import { searchAffiliates } from '../../db/affiliate-lists.ts';
import { searchCodes } from '../../db/codes.ts';
import { searchEvents } from '../../db/event-feed.ts';
import { searchLinks } from '../../db/links.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { label } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { affiliateRow, presentAffiliateRow } from './affiliates.ts';
import { code, presentCode } from './codes.ts';
import { foundEvent } from './events.ts';
import { linkPresenter, linkRow } from './links.ts';

const FOUND = 20;

const found = z
  .object({
    affiliates: z.array(affiliateRow).describe('At most twenty, by name.'),
    links: z.array(linkRow).describe('At most twenty, by slug.'),
    codes: z.array(code).describe('At most twenty, those that work first, by value.'),
    events: z.array(foundEvent).describe('At most twenty, the latest first.'),
  })
  .meta({ id: 'Found', description: 'The affiliates, links, codes and events that match a text.' });

export const searchRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/search',
    caller: accountApp('read'),
    operationId: 'search',
    summary: 'Finds affiliates, links, codes and events by a text.',
    description:
      'Affiliates match by the beginning of the e-mail address or `externalId`, by the id, and by any part of the name; in an app ' +
      'with more than 4,000 affiliates, some match only by the beginning of the name. Links match by the beginning of the ' +
      'slug or `externalId`, and by the id, codes by the beginning of the value or `externalId`, and by the id. Case does not matter, ' +
      'except in an `externalId`. Events match by the whole `sourceEventId`, `customerUserId` or id of the payment at the store: for ' +
      'Stripe, that of its invoice, payment intent or charge.',
    query: z.object({ q: label.meta({ description: 'The text.', examples: ['ada'] }) }),
    response: { status: 200, schema: found },
    handler: async ({ deps, app, query }) => {
      const [affiliates, links, codes, events] = await Promise.all([
        searchAffiliates(deps.sql, app.id, query.q, FOUND),
        searchLinks(deps.sql, app.id, query.q, FOUND),
        searchCodes(deps.sql, app.id, query.q, FOUND),
        searchEvents(deps.sql, app.id, PROVIDER_NAMES, query.q, FOUND),
      ]);
      return {
        affiliates: affiliates.map(presentAffiliateRow),
        links: links.map(linkPresenter(deps, app).row),
        codes: codes.map(presentCode),
        events,
      };
    },
  }),
];
