import * as z from 'zod';
import { isDestinationUrl } from '../../domain/destination-url.ts';
import { isSlug } from '../../domain/slugs.ts';
import {
  booleanText,
  bulkAnswer,
  bulkOf,
  count,
  epochMs,
  givenId,
  idOf,
  label,
  pageOf,
  pageQuery,
  textLike,
} from './common.ts';

const slug = z
  .string()
  .refine(isSlug, 'Must be 2 to 64 characters of A-Z, a-z, 0-9, _ and -.')
  .meta({ pattern: '^[A-Za-z0-9_-]{2,64}$', examples: ['spring'] });

const campaign = label.meta({ examples: ['spring-2026'] });

const destinationUrl = z
  .string()
  .max(2048)
  .refine(isDestinationUrl, "Must be an https or http address, or one of an app's own scheme.")
  .meta({ examples: ['https://example.com/get'] });

export const link = z.object({
  id: idOf('link'),
  slug: textLike('spring'),
  url: textLike('https://api.example.com/l/my-app-k3m9/spring').describe(
    'The address to share. On a host whose first label is the app’s link subdomain, /l/ and the slug are enough.',
  ),
  destinationUrl: textLike('https://example.com/get'),
  campaign: textLike('spring-2026').nullable(),
  active: z.boolean(),
  affiliateId: idOf('affiliate'),
  createdAt: epochMs,
});

/** The body of `POST /apps/:appId/links`, and a row of its bulk form. */
export const newLink = z.strictObject({
  affiliateId: givenId('affiliate'),
  destinationUrl,
  slug: slug.optional(),
  campaign: campaign.nullish(),
});

export const newLinks = bulkOf(newLink);

export const createdLinks = bulkAnswer(link, ['unknown_affiliate', 'slug_taken', 'duplicate_slug']);

/** The body of `PATCH /apps/:appId/links/:linkId`. A slug never changes, so it is no field here. */
export const linkPatch = z.strictObject({
  destinationUrl: destinationUrl.optional(),
  campaign: campaign.nullable().optional(),
  active: z.boolean().optional(),
});

export const linksQuery = z.object({
  ...pageQuery,
  affiliateId: givenId('affiliate').optional(),
  active: booleanText.optional(),
});

/** A link in a list. */
export const linkRow = link.extend({ affiliateName: textLike('First creator'), clicks: count });

export const linksPage = pageOf(linkRow);
