import * as z from 'zod';
import { AFFILIATE_STATUSES } from '../../domain/attribution.ts';
import {
  bulkAnswer,
  bulkOf,
  cents,
  count,
  epochMs,
  idOf,
  label,
  pageOf,
  pageQuery,
  rateBps,
  textLike,
} from './common.ts';

const name = label.meta({ examples: ['First creator'] });
const email = z
  .email()
  .max(320)
  .meta({ examples: ['creator@example.com'] });
const status = z.enum(AFFILIATE_STATUSES);

export const affiliate = z.object({
  id: idOf('affiliate'),
  name: textLike('First creator'),
  email: textLike('creator@example.com').nullable(),
  status,
  defaultCommissionRateBps: rateBps.nullable(),
  createdAt: epochMs,
});

/** The body of `POST /apps/:appId/affiliates`, and a row of its bulk form. */
export const newAffiliate = z.strictObject({
  name,
  email: email.nullish(),
  defaultCommissionRateBps: rateBps.nullish(),
});

export const newAffiliates = bulkOf(newAffiliate);

export const createdAffiliates = bulkAnswer(affiliate, []);

/** The body of `PATCH /apps/:appId/affiliates/:affiliateId`. */
export const affiliatePatch = z.strictObject({
  name: name.optional(),
  email: email.nullable().optional(),
  status: status.optional(),
  defaultCommissionRateBps: rateBps.nullable().optional(),
});

export const affiliatesQuery = z.object({
  ...pageQuery,
  status: status.optional(),
  sort: z.enum(['created', 'name', 'earnings']).default('created'),
});

/** An affiliate in a list. */
export const affiliateRow = affiliate.extend({ clicks: count, installs: count, commissionCents: cents });

export const affiliatesPage = pageOf(affiliateRow);
