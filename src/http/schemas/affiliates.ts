import * as z from 'zod';
import { AFFILIATE_STATUSES } from '../../domain/attribution.ts';
import { anyId, cents, count, epochMs, label, pageOf, pageQuery, rateBps } from './common.ts';

const email = z.email().max(320);
const status = z.enum(AFFILIATE_STATUSES);

export const affiliate = z.object({
  id: anyId,
  name: z.string(),
  email: z.string().nullable(),
  status,
  defaultCommissionRateBps: rateBps.nullable(),
  createdAt: epochMs,
});

/** The body of `POST /apps/:appId/affiliates`, and a row of its bulk form. */
export const newAffiliate = z.strictObject({
  name: label,
  email: email.nullish(),
  defaultCommissionRateBps: rateBps.nullish(),
});

/** The body of `PATCH /apps/:appId/affiliates/:affiliateId`. */
export const affiliatePatch = z.strictObject({
  name: label.optional(),
  email: email.nullable().optional(),
  status: status.optional(),
  defaultCommissionRateBps: rateBps.nullable().optional(),
});

export const affiliatesQuery = z.object({
  ...pageQuery,
  status: status.optional(),
  sort: z.enum(['created', 'name', 'earnings']).default('created'),
});

export const affiliatesPage = pageOf(
  affiliate.extend({ clicks: count, installs: count, commissionCents: cents }),
);
