import { isbot } from 'isbot';
import { recordClick } from '../../db/clicks.ts';
import { isInFuture } from '../../domain/attribution.ts';
import { isId } from '../../domain/ids.ts';
import { isSlug } from '../../domain/slugs.ts';
import { foundOrThrow, invalidField, notFound } from '../errors.ts';
import { clickCaller } from '../rate-limits.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/tracking.ts';

export const clickRoutes = [
  route({
    method: 'POST',
    path: '/clicks',
    auth: 'none',
    permission: null,
    operationId: 'recordClick',
    summary: 'Records a click on a link and answers where the link leads.',
    body: schemas.click,
    errors: ['not_found', 'unavailable'],
    rateLimit: {
      name: 'clicks',
      caller: ({ ctx, body }) => clickCaller(body.customerAppId, ctx.ip, body.ipHash ?? null),
    },
    response: { status: 200, schema: schemas.recordedClick },
    handler: async ({ deps, body, now }) => {
      const { customerAppId, slug, claimToken, ipHash = null, userAgent = null } = body;
      const clickedAt = body.clickedAt ?? now;
      if (isInFuture(clickedAt, now)) throw invalidField('clickedAt', 'Lies in the future.');
      if (!isId('app', customerAppId) || !isSlug(slug)) throw notFound();
      const recorded = await recordClick(deps.sql, {
        appId: customerAppId,
        slug,
        claimToken,
        ipHash,
        userAgent,
        isBot: isbot(userAgent),
        clickedAt,
        // The hash that a caller sends is the caller's own: it says nothing about where an install comes from.
        addressHash: null,
      });
      const { clickId, affiliateId, destinationUrl } = foundOrThrow(recorded);
      return { clickId, affiliateId, destinationUrl };
    },
  }),
];
