import * as z from 'zod';
import { isDestinationUrl } from '../../domain/destination-url.ts';
import { isSlug } from '../../domain/slugs.ts';
import { anyId, booleanText, count, epochMs, label, pageOf, pageQuery } from './common.ts';

const slug = z.string().refine(isSlug, 'Must be 2 to 64 characters of A-Z, a-z, 0-9, _ and -.');

const destinationUrl = z
  .string()
  .max(2048)
  .refine(isDestinationUrl, "Must be an https or http address, or one of an app's own scheme.");

export const link = z.object({
  id: anyId,
  slug: z.string(),
  destinationUrl: z.string(),
  campaign: z.string().nullable(),
  active: z.boolean(),
  affiliateId: anyId,
  createdAt: epochMs,
});

/** The body of `POST /apps/:appId/links`, and a row of its bulk form. */
export const newLink = z.strictObject({
  affiliateId: z.string(),
  destinationUrl,
  slug: slug.optional(),
  campaign: label.nullish(),
});

/** The body of `PATCH /apps/:appId/links/:linkId`. A slug never changes, so it is no field here. */
export const linkPatch = z.strictObject({
  destinationUrl: destinationUrl.optional(),
  campaign: label.nullable().optional(),
  active: z.boolean().optional(),
});

export const linksQuery = z.object({
  ...pageQuery,
  affiliateId: z.string().optional(),
  active: booleanText.optional(),
});

export const linksPage = pageOf(link.extend({ affiliateName: z.string(), clicks: count }));
