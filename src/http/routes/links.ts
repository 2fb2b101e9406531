import type * as z from 'zod';
import { createLinks, listLinks, updateLink } from '../../db/links.ts';
import type { Link, LinkRefusal } from '../../db/links.ts';
import type { AffiliateId, AppId, LinkId } from '../../domain/ids.ts';
import { slugOf } from '../../domain/slugs.ts';
import { decodeCursor, presentPage, timeKey } from '../cursors.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, foundOrThrow, notFound } from '../errors.ts';
import type { IdGenerator } from '../id-generator.ts';
import { presentBulk } from '../presenters/bulk.ts';
import { linkPresenter } from '../presenters/link.ts';
import { route } from '../route.ts';
import { EMPTY_PAGE, filterId } from '../schemas/common.ts';
import * as schemas from '../schemas/links.ts';

/** How often a slug that was made up here may turn out to be taken. */
const SLUG_ATTEMPTS = 5;

/** What a refused row of a bulk call is told. */
const REFUSALS: Record<LinkRefusal, string> = {
  unknown_affiliate: 'The app has no such affiliate.',
  slug_taken: 'Another link of this app has that slug, perhaps in another case.',
  duplicate_slug: 'An earlier row of this call has that slug, perhaps in another case.',
};

type LinkRow = z.output<typeof schemas.newLink>;

/** Makes links; where a slug was made up here and is taken, another one is tried. Answers in the order of `rows`. */
async function makeLinks(
  { sql }: HttpDeps,
  appId: AppId,
  idGenerator: IdGenerator,
  rows: readonly LinkRow[],
): Promise<(Link | LinkRefusal)[]> {
  const ids = rows.map(() => idGenerator.id('link'));
  const made: (Link | LinkRefusal)[] = [];
  let waiting = [...rows.keys()];
  for (let attempt = 1; waiting.length > 0; attempt += 1) {
    const links = waiting.map((index) => {
      const { affiliateId, destinationUrl, slug, campaign = null } = rows[index] as LinkRow;
      return {
        id: ids[index] as LinkId,
        // A malformed id is one that no affiliate has.
        affiliateId: affiliateId as AffiliateId,
        destinationUrl,
        slug: slug ?? slugOf(idGenerator.bytes(8)),
        campaign,
      };
    });
    const outcomes = await createLinks(sql, appId, links);
    waiting.forEach((index, position) => {
      made[index] = outcomes[position] as Link | LinkRefusal;
    });
    if (attempt === SLUG_ATTEMPTS) break;
    waiting = waiting.filter(
      (index) =>
        rows[index]?.slug === undefined && (made[index] === 'slug_taken' || made[index] === 'duplicate_slug'),
    );
  }
  return made;
}

export const linkRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/links',
    auth: 'account',
    permission: 'read',
    operationId: 'listLinks',
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
        linkPresenter(deps, app).row,
      );
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/links',
    auth: 'account',
    permission: 'write',
    operationId: 'createLink',
    summary: 'Creates a link. Without a slug one is made up.',
    body: schemas.newLink,
    response: { status: 201, schema: schemas.link },
    errors: ['slug_taken'],
    handler: async ({ deps, app, idGenerator, body }) => {
      const [made] = await makeLinks(deps, app.id, idGenerator, [body]);
      switch (made) {
        case undefined:
        case 'unknown_affiliate':
          throw notFound();
        case 'duplicate_slug':
        case 'slug_taken':
          throw new ApiError('slug_taken', { detail: REFUSALS.slug_taken });
        default:
          return linkPresenter(deps, app).one(made);
      }
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/links/bulk',
    auth: 'account',
    permission: 'write',
    operationId: 'createLinks',
    summary: 'Creates up to 100 links. A row that the state of the app refuses fails alone.',
    description:
      'A row that breaks the schema rejects the whole call (400, `errors[].path` names the row). A row whose slug is ' +
      'taken, whose affiliate is unknown, or whose slug an earlier row has, is listed in `failed`.',
    body: schemas.newLinks,
    response: { status: 200, schema: schemas.createdLinks },
    handler: async ({ deps, app, idGenerator, body }) =>
      presentBulk(
        await makeLinks(deps, app.id, idGenerator, body.rows),
        linkPresenter(deps, app).one,
        REFUSALS,
      ),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/links/:linkId',
    auth: 'account',
    permission: 'write',
    operationId: 'updateLink',
    summary: 'Changes a link. Its slug never changes.',
    ids: { linkId: 'link' },
    body: schemas.linkPatch,
    response: { status: 200, schema: schemas.link },
    handler: async ({ deps, app, ids, body }) =>
      linkPresenter(deps, app).one(foundOrThrow(await updateLink(deps.sql, app.id, ids.linkId, body))),
  }),
];
