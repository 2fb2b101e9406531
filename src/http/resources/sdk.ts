import * as z from 'zod';
import { attributeInstall } from '../../commands/attribute-install.ts';
import { identifyUser } from '../../commands/identify-user.ts';
import { isInFuture, MATCH_METHODS } from '../../domain/attribution.ts';
import { isSlug } from '../../domain/slugs.ts';
import { clientAddress } from '../client-address.ts';
import { ApiError, invalidField } from '../errors.ts';
import { claimToken, customerUserId, deviceId, idOf, textField } from '../fields.ts';
import { instantInBody } from '../instants.ts';
import { sdkRoute } from '../route.ts';

const install = z
  .object({
    deviceId,
    claimToken: claimToken.nullish(),
    affiliateCode: z
      .string()
      .trim()
      .min(1)
      .max(200)
      .meta({ description: "A link's slug or an affiliate's id.", examples: ['spring'] })
      .nullish(),
    firstOpenAt: instantInBody,
    deferred: z
      .boolean()
      .describe('Whether to match clicks from the same address if the token and the code attribute nothing.')
      .nullish(),
  })
  .refine(
    (body) => Boolean(body.claimToken) || Boolean(body.affiliateCode) || body.deferred === true,
    'Send claimToken, affiliateCode or "deferred": true.',
  );

const attributed = z.object({
  attributionId: idOf('attribution'),
  affiliateId: idOf('affiliate'),
  matchMethod: z.enum(MATCH_METHODS),
});

const identify = z.object({ deviceId, customerUserId, identifiedAt: instantInBody });

const identified = z.object({
  attributionId: idOf('attribution'),
  customerUserId: textField('user-4711'),
});

export const sdkRoutes = [
  sdkRoute({
    method: 'POST',
    path: '/sdk/install',
    operationId: 'attributeInstall',
    summary: 'Attributes an install to an affiliate.',
    description: 'The first attribution of a device is permanent. Later calls return it.',
    body: install,
    errors: ['no_attributable_click', 'ambiguous_match'],
    response: { status: 200, schema: attributed },
    handler: async ({ ctx, deps, appId, body, now }) => {
      if (isInFuture(body.firstOpenAt, now)) throw invalidField('firstOpenAt', 'Must not be in the future.');
      const code = body.affiliateCode ?? null;
      const address = body.deferred === true ? clientAddress(ctx, deps) : null;
      const result = await attributeInstall(deps, {
        appId,
        deviceId: body.deviceId,
        claimToken: body.claimToken ?? null,
        // Affiliate ids have the format of a slug, too. Any other text is no code.
        affiliateCode: code !== null && isSlug(code) ? code : null,
        firstOpenAt: body.firstOpenAt,
        deferred: address === null ? null : { address, now },
      });
      switch (result.kind) {
        case 'attributed': {
          const { attributionId, affiliateId, matchMethod } = result.attribution;
          return { attributionId, affiliateId, matchMethod };
        }
        case 'no_touch':
          throw new ApiError('no_attributable_click');
        case 'ambiguous':
          throw new ApiError('ambiguous_match', {
            detail:
              'Clicks of several affiliates came from this address. Ask the user for a code, or send the claim token.',
          });
      }
    },
  }),

  sdkRoute({
    method: 'POST',
    path: '/sdk/identify',
    operationId: 'identifyUser',
    summary: "Binds the app's user id to the device's attribution.",
    description: 'If the install has not been reported yet, the user id is stored and bound when it is.',
    body: identify,
    errors: ['no_attribution'],
    addressLimit: 'identify',
    response: { status: 200, schema: identified },
    handler: async ({ deps, appId, body, now }) => {
      if (isInFuture(body.identifiedAt, now))
        throw invalidField('identifiedAt', 'Must not be in the future.');
      const user = {
        appId,
        deviceId: body.deviceId,
        customerUserId: body.customerUserId,
        identifiedAt: body.identifiedAt,
      };
      const attributionId = await identifyUser(deps, user);
      if (attributionId === null) throw new ApiError('no_attribution');
      return { attributionId, customerUserId: body.customerUserId };
    },
  }),
];
