import * as z from 'zod';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { customerUserId, deviceId, epochMs, givenId, idOf, textLike } from './common.ts';

/** A UUID in any case, of any version: clients of all platforms make them. */
const claimToken = z.guid().meta({ examples: ['0197f2a0-5b1c-7c3e-9d4f-2a6b8c0d1e2f'] });

/** How much of a User-Agent is kept, characters. */
export const USER_AGENT_LENGTH = 8_000;

/** The body of `POST /clicks`. Unknown fields are left alone, so that older services understand newer clients. */
export const click = z.object({
  customerAppId: givenId('app'),
  slug: textLike('spring'),
  claimToken,
  ipHash: z
    .string()
    .max(200)
    .meta({
      description: "a hash of the visitor's address, never the address",
      examples: ['b94d27b9934d3e08'],
    })
    .nullish(),
  userAgent: z
    .string()
    .max(USER_AGENT_LENGTH)
    .meta({ examples: ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)'] })
    .nullish(),
  clickedAt: epochMs.nullish(),
});

export const recordedClick = z.object({
  clickId: idOf('click'),
  affiliateId: idOf('affiliate'),
  destinationUrl: textLike('https://example.com/get'),
});

/** The body of `POST /sdk/install`. */
export const install = z
  .object({
    deviceId,
    claimToken: claimToken.nullish(),
    affiliateCode: z
      .string()
      .trim()
      .min(1)
      .max(200)
      .meta({ description: "a link's slug, or an affiliate's id", examples: ['spring'] })
      .nullish(),
    firstOpenAt: epochMs,
    deferred: z.boolean().nullish(),
  })
  .refine(
    (body) => Boolean(body.claimToken) || Boolean(body.affiliateCode) || body.deferred === true,
    'One of claimToken and affiliateCode is needed, or "deferred": true.',
  );

export const attributed = z.object({
  attributionId: idOf('attribution'),
  affiliateId: idOf('affiliate'),
  matchMethod: z.enum(MATCH_METHODS),
});

/** The body of `POST /sdk/identify`. */
export const identify = z.object({ deviceId, customerUserId, identifiedAt: epochMs });

export const identified = z.object({
  attributionId: idOf('attribution'),
  customerUserId: textLike('user-4711'),
});
