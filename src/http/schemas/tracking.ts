import * as z from 'zod';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { anyId, customerUserId, deviceId, epochMs } from './common.ts';

/** A UUID in any case, of any version: clients of all platforms make them. */
const claimToken = z.guid();

/** The body of `POST /clicks`. Unknown fields are left alone, so that older services understand newer clients. */
export const click = z.object({
  customerAppId: z.string(),
  slug: z.string(),
  claimToken,
  ipHash: z.string().max(200).nullish(),
  userAgent: z.string().max(8_000).nullish(),
  clickedAt: epochMs.nullish(),
});

export const recordedClick = z.object({ clickId: anyId, affiliateId: anyId, destinationUrl: z.string() });

/** The body of `POST /sdk/install`. */
export const install = z
  .object({
    deviceId,
    claimToken: claimToken.nullish(),
    affiliateCode: z.string().trim().min(1).max(200).nullish(),
    firstOpenAt: epochMs,
    deferred: z.boolean().nullish(),
  })
  .refine(
    (body) => Boolean(body.claimToken) || Boolean(body.affiliateCode) || body.deferred === true,
    'One of claimToken and affiliateCode is needed, or "deferred": true.',
  );

export const attributed = z.object({
  attributionId: anyId,
  affiliateId: anyId,
  matchMethod: z.enum(MATCH_METHODS),
});

/** The body of `POST /sdk/identify`. */
export const identify = z.object({ deviceId, customerUserId, identifiedAt: epochMs });

export const identified = z.object({ attributionId: anyId, customerUserId: z.string() });
