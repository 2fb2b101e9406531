import * as z from 'zod';
import { cents, count, epochMs, givenId, idOf, pageOf, pageQuery, textLike } from './common.ts';

export const payout = z.object({
  id: idOf('payout'),
  affiliateId: idOf('affiliate'),
  affiliateName: textLike('First creator'),
  itemCount: count,
  totalCents: cents,
  currency: z.literal('USD'),
  createdAt: epochMs,
  csvSha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .meta({ examples: ['0'.repeat(64)] }),
});

export const payoutsQuery = z.object({ ...pageQuery, affiliateId: givenId('affiliate').optional() });

export const payoutsPage = pageOf(payout);

export const payoutPreview = z.object({
  asOf: textLike('2026-06-15T12:00:00.000Z', 'ISO 8601, UTC'),
  rows: z.array(
    z.object({
      affiliateId: idOf('affiliate'),
      affiliateName: textLike('First creator'),
      count,
      totalCents: cents,
    }),
  ),
  totalCents: cents,
});
