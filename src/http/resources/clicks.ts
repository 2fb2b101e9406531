import { isbot } from 'isbot';
import * as z from 'zod';
import { USER_AGENT_LENGTH } from '../../commands/follow-link.ts';
import { recordClick } from '../../db/clicks.ts';
import { isId } from '../../domain/ids.ts';
import { isSlug } from '../../domain/slugs.ts';
import { foundOrThrow, notFound } from '../errors.ts';
import { claimToken, idOf, inputId, orNull, textField } from '../fields.ts';
import { refuseFuture } from '../future-times.ts';
import { instantInBody } from '../instants.ts';
import { clickCaller } from '../rate-limits.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/** Unknown fields are ignored, so that an older service accepts newer clients. */
const click = z
  .object({
    customerAppId: inputId('app'),
    slug: textField('spring', 'The slug of the link, in any case.'),
    claimToken,
    ipHash: orNull(
      z
        .string()
        .max(200)
        .meta({
          description:
            "A hash of the visitor's address, which limits are counted by. Never send the address itself.",
          examples: ['b94d27b9934d3e08'],
        }),
      'Null or absent: the address of the caller.',
    ).optional(),
    userAgent: orNull(
      z
        .string()
        .max(8_000)
        .meta({
          description: `The visitor's User-Agent: a bot is not counted. The first ${USER_AGENT_LENGTH} characters are stored.`,
          examples: ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)'],
        }),
      'Null or absent: unknown.',
    ).optional(),
    clickedAt: orNull(instantInBody('When the visitor clicked.'), 'Null or absent: now.').optional(),
  })
  .meta({ id: 'NewClick', description: 'A click to record.' });

const recordedClick = z
  .object({
    clickId: idOf('click'),
    affiliateId: idOf('affiliate'),
    destinationUrl: textField('https://example.com/get', 'Where to send the visitor.'),
  })
  .meta({ id: 'Click', description: 'The click, and where it leads.' });

export const clickRoutes = [
  route({
    method: 'POST',
    path: '/clicks',
    caller: anyone(),
    operationId: 'recordClick',
    summary: 'Records a click on a link.',
    description:
      'Returns where the link leads. A second call with the same `claimToken` returns the first click and records none.',
    body: click,
    errors: ['not_found', 'unavailable'],
    rateLimit: {
      name: 'clicks',
      caller: ({ ctx, body }) => clickCaller(body.customerAppId, ctx.ip, body.ipHash ?? null),
    },
    response: { status: 200, schema: recordedClick },
    handler: async ({ deps, body, now }) => {
      const { customerAppId, slug, ipHash = null } = body;
      const userAgent = body.userAgent?.slice(0, USER_AGENT_LENGTH) ?? null;
      const clickedAt = body.clickedAt ?? now;
      await refuseFuture(deps, 'clickedAt', clickedAt, now);
      if (!isId('app', customerAppId) || !isSlug(slug)) throw notFound();
      const recorded = await recordClick(deps.sql, {
        appId: customerAppId,
        slug,
        claimToken: body.claimToken,
        ipHash,
        userAgent,
        isBot: isbot(userAgent),
        clickedAt,
        // The caller computed `ipHash`, so it can't be compared with the address of an install.
        addressHash: null,
      });
      const { clickId, affiliateId, destinationUrl } = foundOrThrow(recorded);
      return { clickId, affiliateId, destinationUrl };
    },
  }),
];
