import * as z from 'zod';
import type { App } from '../../db/apps.ts';
import { createLinks, listLinks, updateLink } from '../../db/links.ts';
import type {
  Link,
  LinkListRow,
  LinkOutcome as RowOutcome,
  LinkRefusal as RowRefusal,
} from '../../db/links.ts';
import { isDeclaredDestination, isDestinationUrl } from '../../domain/destination-url.ts';
import type { AffiliateId, LinkId } from '../../domain/ids.ts';
import { isSlug, slugOf } from '../../domain/slugs.ts';
import { bulkOf, bulkResponse, presentBulk } from '../bulk.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import { ApiError, externalIdTaken, foundOrThrow, invalidField } from '../errors.ts';
import {
  ATTRIBUTED_REVENUE,
  nameOfAffiliate,
  booleanText,
  cents,
  count,
  epochMs,
  externalId,
  filterId,
  idOf,
  inputId,
  label,
  orNull,
  presentedExternalId,
  textField,
} from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  givenFilters,
  MAY_BE_SHORT,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const SLUG =
  'The last part of the address, and a code that users can enter. Unique within the app, without regard to case.';
const CAMPAIGN = 'Your name for a group of links.';
const DESTINATION_URL = 'Where the link leads.';

const slug = z
  .string()
  .refine(isSlug, 'Must be 2 to 64 characters of A-Z, a-z, 0-9, _ and -.')
  .meta({ description: SLUG, pattern: '^[A-Za-z0-9_-]{2,64}$', examples: ['spring'] });

const campaign = label.meta({ description: CAMPAIGN, examples: ['spring-2026'] });

const destinationUrl = z
  .string()
  .max(2048)
  .refine(
    isDestinationUrl,
    "Must be an https or http URL without a user name, or one with an app's own scheme.",
  )
  .meta({ description: DESTINATION_URL, examples: ['https://example.com/get'] });

const DESTINATIONS =
  'Where the redirect leads on iOS and on Android instead, chosen by the User-Agent. A system without one, a bot and an unknown User-Agent get `destinationUrl`.';
const ofPlatform = (example: string) =>
  orNull(destinationUrl.meta({ examples: [example] }), 'Null or absent: `destinationUrl`.').optional();
/** In a new link. */
const destinations = orNull(
  z
    .strictObject({
      ios: ofPlatform('https://apps.apple.com/app/id1234567890'),
      android: ofPlatform('https://play.google.com/store/apps/details?id=com.example.app'),
    })
    .describe(DESTINATIONS),
  'Null or absent: none.',
);

const isActive = z.boolean().describe('An inactive link redirects and records nothing.');

const link = z
  .object({
    id: idOf('link'),
    slug: textField('spring', SLUG),
    url: textField(
      'https://api.example.com/l/my-app-k3m9/spring',
      "The address to share. On a host whose first label is the app's link subdomain, `/l/SLUG` also works.",
    ),
    directUrl: textField(
      'https://api.example.com/l/my-app-k3m9/spring?via=spring',
      "`url` with the slug as `via`. On a device with the app, it opens the app if the app's settings name it (`iosAppIds`, `androidApps`); the service then sees no click.",
    ),
    destinationUrl: textField('https://example.com/get', DESTINATION_URL),
    destinations: z
      .object({
        ios: orNull(
          textField('https://apps.apple.com/app/id1234567890', 'The destination on iOS.'),
          'Null: `destinationUrl`.',
        ),
        android: orNull(
          textField(
            'https://play.google.com/store/apps/details?id=com.example.app',
            'The destination on Android.',
          ),
          'Null: `destinationUrl`.',
        ),
      })
      .describe(DESTINATIONS),
    campaign: orNull(textField('spring-2026', CAMPAIGN), 'Null if none was given.'),
    active: isActive,
    affiliateId: idOf('affiliate'),
    externalId: presentedExternalId,
    createdAt: epochMs('When the link was created.'),
  })
  .meta({ id: 'Link', description: 'A tracked link of an affiliate.' });

/** A link in a list, with its totals. */
export const linkRow = link
  .extend({
    affiliateName: nameOfAffiliate,
    affiliateStatus: enums.affiliateStatus,
    clicks: count('Clicks of all time, without those of bots.'),
    installs: count('Attributed installs of all time.'),
    revenueCents: cents(ATTRIBUTED_REVENUE),
  })
  .meta({ id: 'ListedLink', description: 'A link with its clicks, installs and revenue of all time.' });

const newLink = z
  .strictObject({
    affiliateId: inputId('affiliate'),
    destinationUrl,
    destinations: destinations.optional(),
    slug: slug.optional(),
    campaign: orNull(campaign, 'Null or absent: none.').optional(),
    externalId: orNull(externalId, 'Null or absent: none.').optional(),
  })
  .meta({ id: 'NewLink', description: 'A link to create.' });

/** A slug never changes, so it is not a field here. */
const linkPatch = z
  .strictObject({
    destinationUrl: destinationUrl.optional(),
    destinations: destinations.optional(),
    campaign: orNull(campaign, 'Null removes it.').optional(),
    active: isActive.optional(),
  })
  .meta({ id: 'LinkChange', description: 'The fields to change. Null clears a field.' });

const linksQuery = z.object({
  ...pageQuery,
  affiliateId: inputId('affiliate').optional(),
  active: booleanText('Only active links, or only inactive ones.').optional(),
  q: label
    .meta({
      description: 'A part of the slug, of the `campaign` or of the `externalId`, or the id. Ignores case.',
      examples: ['spring'],
    })
    .optional(),
});

type PresentedLink = ReturnType<ReturnType<typeof linkPresenter>['one']>;

/** Returns presenters of the app's links: `one` for a link, `row` for a link in a list. */
export function linkPresenter({ publicUrl }: Pick<HttpDeps, 'publicUrl'>, { linkSubdomain }: App) {
  const one = (row: Link) => ({
    id: row.id,
    slug: row.slug,
    url: `${publicUrl}/l/${linkSubdomain}/${row.slug}`,
    directUrl: `${publicUrl}/l/${linkSubdomain}/${row.slug}?via=${row.slug}`,
    destinationUrl: row.destinationUrl,
    destinations: { ios: row.iosDestinationUrl, android: row.androidDestinationUrl },
    campaign: row.campaign,
    active: row.active,
    affiliateId: row.affiliateId,
    externalId: row.externalId,
    createdAt: row.createdAt,
  });
  return {
    one,
    row: (row: LinkListRow) => ({
      ...one(row),
      affiliateName: row.affiliateName,
      affiliateStatus: row.affiliateStatus,
      clicks: row.clicks,
      installs: row.installs,
      revenueCents: row.revenueCents,
    }),
  };
}

/** How many generated slugs may be taken before a row fails. */
const SLUG_ATTEMPTS = 5;

type LinkRefusal = RowRefusal | 'undeclared_scheme';
type LinkOutcome = RowOutcome | LinkRefusal;

const REFUSALS: Record<LinkRefusal, string> = {
  unknown_affiliate: 'The app has no affiliate with this id.',
  slug_taken: 'Another link of this app has this slug. Slugs are compared without case. Choose another slug.',
  duplicate_slug:
    'An earlier row of this call has this slug. Slugs are compared without case. Choose another slug.',
  duplicate_external_id:
    'An earlier row of this call, which failed, has this externalId. Fix that row and send both again.',
  undeclared_scheme:
    'The app did not declare the scheme of this URL. Add it to the setting destinationSchemes, or use an https URL.',
};

const LINK_REFUSALS = Object.keys(REFUSALS) as LinkRefusal[];

type NewLinkFields = z.output<typeof newLink>;

/** Returns the name of the first destination whose scheme the app did not declare, or null. */
function undeclaredDestination(
  {
    destinationUrl: url,
    destinations: of,
  }: Pick<z.output<typeof linkPatch>, 'destinationUrl' | 'destinations'>,
  { destinationSchemes }: App,
): string | null {
  const given = { destinationUrl: url, 'destinations.ios': of?.ios, 'destinations.android': of?.android };
  const [found] = Object.entries(given).find(
    ([, address]) => address != null && !isDeclaredDestination(address, destinationSchemes),
  ) ?? [null];
  return found;
}

/**
 * Creates links and returns the outcomes in the order of `rows`. If a generated slug is taken, another one is tried.
 */
async function createFrom(
  { sql }: HttpDeps,
  app: App,
  idGenerator: IdGenerator,
  rows: readonly NewLinkFields[],
): Promise<LinkOutcome[]> {
  const ids = rows.map(() => idGenerator.id('link'));
  const outcomes: LinkOutcome[] = rows.map(() => 'undeclared_scheme');
  let waiting = [...rows.keys()].filter(
    (index) => undeclaredDestination(rows[index] as NewLinkFields, app) === null,
  );
  for (let attempt = 1; waiting.length > 0; attempt += 1) {
    const links = waiting.map((index) => {
      const row = rows[index] as NewLinkFields;
      return {
        id: ids[index] as LinkId,
        // May be malformed, and then matches no affiliate.
        affiliateId: row.affiliateId as AffiliateId,
        destinationUrl: row.destinationUrl,
        iosDestinationUrl: row.destinations?.ios ?? null,
        androidDestinationUrl: row.destinations?.android ?? null,
        slug: row.slug ?? slugOf(idGenerator.bytes(8)),
        campaign: row.campaign ?? null,
        externalId: row.externalId ?? null,
      };
    });
    const created = await createLinks(sql, app.id, links);
    waiting.forEach((index, position) => {
      outcomes[index] = created[position] as LinkOutcome;
    });
    if (attempt === SLUG_ATTEMPTS) break;
    waiting = waiting.filter(
      (index) =>
        rows[index]?.slug === undefined &&
        (outcomes[index] === 'slug_taken' || outcomes[index] === 'duplicate_slug'),
    );
  }
  return outcomes;
}

export const linkRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/links',
    caller: accountApp('read'),
    operationId: 'listLinks',
    summary: 'Lists links with their clicks, installs and revenue, oldest first.',
    description: `With \`q\`: ${MAY_BE_SHORT} ${CSV_LIST}`,
    query: linksQuery,
    response: { status: 200, schema: pageSchema(linkRow), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const active = query.active ?? null;
      const text = query.q ?? null;
      const filters = { affiliateId: query.affiliateId ?? null, active, ...givenFilters({ q: text }) };
      const key = { list: 'links', appId: app.id, filters };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listLinks(deps.sql, app.id, { affiliateId, active, text }, after, query.limit);
      return presentPage(key, page, linkPresenter(deps, app).row);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/links',
    caller: accountApp('write'),
    operationId: 'createLink',
    summary: 'Creates a link.',
    description: 'If `slug` is missing, one is generated.',
    body: newLink,
    response: { status: 201, schema: link },
    errors: ['slug_taken', 'external_id_taken'],
    handler: async ({ deps, app, idGenerator, body }) => {
      const [created] = await createFrom(deps, app, idGenerator, [body]);
      switch (created) {
        case undefined:
        case 'unknown_affiliate':
          throw new ApiError('not_found', { detail: `affiliateId: ${REFUSALS.unknown_affiliate}` });
        case 'undeclared_scheme':
          throw invalidField(
            undeclaredDestination(body, app) ?? 'destinationUrl',
            REFUSALS.undeclared_scheme,
          );
        case 'duplicate_slug':
        case 'slug_taken':
          throw new ApiError('slug_taken', { detail: REFUSALS.slug_taken });
        case 'duplicate_external_id':
          throw new Error('a single link is a duplicate of another one of its call');
        default:
          if ('existingId' in created) throw externalIdTaken(created.existingId);
          return linkPresenter(deps, app).one(created);
      }
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/links/bulk',
    caller: accountApp('write'),
    operationId: 'createLinks',
    summary: 'Creates up to 100 links.',
    description:
      'An invalid row rejects the whole call with a 400, and `errors[].path` names the row. A row fails alone, and is listed ' +
      'in `failed`, if its slug is taken or used by an earlier row, if its affiliate is unknown, or if the app did not declare its scheme. A row ' +
      'whose `externalId` a link or an earlier row has creates nothing and is listed in `existing`.',
    body: bulkOf(newLink),
    response: {
      status: 200,
      schema: bulkResponse(link, 'link', LINK_REFUSALS),
    },
    handler: async ({ deps, app, idGenerator, body }) => {
      const outcomes = await createFrom(deps, app, idGenerator, body.rows);
      return presentBulk<Link, LinkRefusal, PresentedLink>(outcomes, linkPresenter(deps, app).one, REFUSALS);
    },
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/links/:linkId',
    caller: accountApp('write'),
    operationId: 'updateLink',
    summary: 'Updates a link.',
    description: 'The slug of a link never changes.',
    ids: { linkId: 'link' },
    body: linkPatch,
    response: { status: 200, schema: link },
    handler: async ({ deps, app, ids, body }) => {
      const undeclared = undeclaredDestination(body, app);
      if (undeclared !== null) throw invalidField(undeclared, REFUSALS.undeclared_scheme);
      const { destinations: change, ...fields } = body;
      const updated = await updateLink(deps.sql, app.id, ids.linkId, {
        ...fields,
        // Null removes both.
        iosDestinationUrl: change === null ? null : change?.ios,
        androidDestinationUrl: change === null ? null : change?.android,
      });
      return linkPresenter(deps, app).one(foundOrThrow(updated));
    },
  }),
];
