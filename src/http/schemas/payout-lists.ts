import * as z from 'zod';
import { anyId, cents, count, epochMs, pageOf, pageQuery } from './common.ts';

export const payout = z.object({
  id: anyId,
  affiliateId: anyId,
  affiliateName: z.string(),
  itemCount: count,
  totalCents: cents,
  currency: z.literal('USD'),
  createdAt: epochMs,
  csvSha256: z.string().nullable(),
});

export const payoutsQuery = z.object({ ...pageQuery, affiliateId: z.string().optional() });

export const payoutsPage = pageOf(payout);

export const payoutPreview = z.object({
  asOf: z.string().describe('ISO 8601, UTC'),
  rows: z.array(z.object({ affiliateId: anyId, affiliateName: z.string(), count, totalCents: cents })),
  totalCents: cents,
});
