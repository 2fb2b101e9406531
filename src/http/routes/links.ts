import { createLink, listLinks, updateLink } from '../../db/links.ts';
import { isId } from '../../domain/ids.ts';
import { decodeCursor, presentPage, timeKey } from '../cursors.ts';
import { ApiError, foundOrThrow, notFound } from '../errors.ts';
import { presentLink, presentLinkRow } from '../presenters/link.ts';
import { route } from '../route.ts';
import { EMPTY_PAGE, filterId } from '../schemas/common.ts';
import * as schemas from '../schemas/links.ts';

export const linkRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/links',
    auth: 'account',
    permission: 'read',
    summary: 'Lists links with their clicks.',
    query: schemas.linksQuery,
    response: { status: 200, schema: schemas.linksPage },
    handler: async ({ deps, app, query }) => {
      const active = query.active ?? null;
      const key = {
        list: 'links',
        appId: app.id,
        filters: { affiliateId: query.affiliateId ?? null, active },
      };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      return presentPage(
        key,
        await listLinks(deps.sql, app.id, { affiliateId, active }, after, query.limit),
        presentLinkRow,
      );
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/links',
    auth: 'account',
    permission: 'write',
    summary: 'Creates a link. Without a slug one is made up.',
    body: schemas.newLink,
    response: { status: 201, schema: schemas.link },
    handler: async ({ deps, app, body }) => {
      const { affiliateId, destinationUrl, slug = null, campaign = null } = body;
      if (!isId('affiliate', affiliateId)) throw notFound();
      const made = await createLink(deps.sql, app.id, { affiliateId, destinationUrl, slug, campaign });
      switch (made) {
        case 'unknown_affiliate':
          throw notFound();
        case 'slug_taken':
          throw new ApiError('slug_taken', {
            detail: 'Another link of this app has that slug, perhaps in another case.',
          });
        default:
          return presentLink(made);
      }
    },
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/links/:linkId',
    auth: 'account',
    permission: 'write',
    summary: 'Changes a link. Its slug never changes.',
    ids: { linkId: 'link' },
    body: schemas.linkPatch,
    response: { status: 200, schema: schemas.link },
    handler: async ({ deps, app, ids, body }) =>
      presentLink(foundOrThrow(await updateLink(deps.sql, app.id, ids.linkId, body))),
  }),
];
