import * as z from 'zod';
import { attributeInstall } from '../../commands/attribute-install.ts';
import { identifyUser } from '../../commands/identify-user.ts';
import { attributeTestInstall, identifyTestUser } from '../../commands/test-sdk-calls.ts';
import { asSdk, TOUCH_OUTCOMES } from '../../domain/attribution.ts';
import { isSlug } from '../../domain/slugs.ts';
import { isPlaceholder } from '../../domain/user-ids.ts';
import { clientAddress } from '../client-address.ts';
import { ApiError } from '../errors.ts';
import * as enums from '../enum-fields.ts';
import { claimToken, customerUserId, deviceId, idOf, orNull, presentedUserId } from '../fields.ts';
import { refuseFuture } from '../future-times.ts';
import { instantInBody } from '../instants.ts';
import { sdkKey } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/** Fields that the SDKs send. Other clients need none of them. */
const sdkFields = {
  acceptUnattributed: orNull(
    z
      .boolean()
      .describe(
        'Whether to answer with a 200 and nulls instead of a 404 if there is no attribution, and to add `touch` or `affiliateId` to the answer.',
      ),
    'Null or absent: no.',
  ).optional(),
  sdk: z
    .unknown()
    .optional()
    .meta({
      description: 'The SDK and its version. A text in another form is ignored.',
      examples: ['web/0.1.0'],
    }),
};

const install = z
  .object({
    deviceId,
    claimToken: orNull(claimToken, 'Null or absent: none.').optional(),
    affiliateCode: orNull(
      z
        .string()
        .trim()
        .min(1)
        .max(200)
        .meta({
          description: "The code that the user entered: a link's slug or an affiliate's id.",
          examples: ['spring'],
        }),
      'Null or absent: none.',
    ).optional(),
    codeEnteredAt: orNull(
      instantInBody('When the user entered the code. Purchases before it are not attributed by the code.'),
      'Null or absent: when the request arrives.',
    ).optional(),
    firstOpenAt: instantInBody('When the app was first opened on the device.'),
    deferred: orNull(
      z
        .boolean()
        .describe(
          'Whether to match clicks from the same address if the token and the code attribute nothing.',
        ),
      'Null or absent: no.',
    ).optional(),
    ...sdkFields,
  })
  .refine(
    (body) => Boolean(body.claimToken) || Boolean(body.affiliateCode) || body.deferred === true,
    'Send claimToken, affiliateCode or "deferred": true.',
  )
  .meta({ id: 'Install', description: 'An install to attribute.' });

const touch = z
  .enum(TOUCH_OUTCOMES)
  .describe(
    '`won`: the device is attributed to this touch. `existing`: it keeps an earlier attribution. `unknown`: nobody has this code or token.',
  );

/** Says that the answer has nulls only with `acceptUnattributed`. */
const none = (field: string) => z.null().describe(`No ${field}: there is no attribution.`);

const attributed = z
  .union([
    z.object({
      attributionId: idOf('attribution'),
      affiliateId: idOf('affiliate'),
      matchMethod: enums.matchMethod,
      touch: touch.optional(),
    }),
    z
      .object({
        attributionId: none('id'),
        affiliateId: none('affiliate'),
        matchMethod: none('method'),
        touch: z.literal('unknown').describe('Nobody has this code or token.'),
      })
      .describe('Only with `acceptUnattributed`.'),
  ])
  .meta({ id: 'Attribution', description: 'The affiliate that the install is attributed to.' });

const UNATTRIBUTED = { attributionId: null, affiliateId: null, matchMethod: null, touch: 'unknown' } as const;

const identify = z
  .object({
    deviceId,
    customerUserId,
    identifiedAt: instantInBody('When the user signed in.'),
    signature: orNull(
      z
        .string()
        .max(200)
        .meta({
          description:
            "Hex HMAC-SHA256 of `customerUserId`, made by the app's server with the identity secret. Required if the app's setting `identityVerification` is on.",
          examples: ['9b74c9897bac770ffc029102a200c5de47eac4a4a3f0c0e5e2b1b0a1c2d3e4f5'],
        }),
      'Null or absent: none.',
    ).optional(),
    ...sdkFields,
  })
  .meta({ id: 'Identify', description: 'A user of a device.' });

const identified = z
  .union([
    z.object({
      attributionId: idOf('attribution'),
      customerUserId: presentedUserId,
      affiliateId: idOf(
        'affiliate',
        'The affiliate of the attribution, with `acceptUnattributed`.',
      ).optional(),
    }),
    z
      .object({
        attributionId: none('id'),
        customerUserId: presentedUserId,
        affiliateId: none('affiliate'),
      })
      .describe('Only with `acceptUnattributed`. The pair is stored.'),
  ])
  .meta({ id: 'IdentifiedUser', description: 'The user, and the attribution of the device.' });

/** What each kind of key calls. */
const CALLS = {
  live: { attribute: attributeInstall, identify: identifyUser },
  test: { attribute: attributeTestInstall, identify: identifyTestUser },
} as const;

const TEST_KEY = 'What a test key (`pk_test_…`) reports neither counts nor earns.';

export const sdkRoutes = [
  route({
    method: 'POST',
    path: '/sdk/install',
    caller: sdkKey(),
    operationId: 'attributeInstall',
    summary: 'Attributes an install to an affiliate.',
    description: `The first attribution of a device is permanent. Later calls return it. ${TEST_KEY}`,
    body: install,
    errors: ['no_attributable_click', 'ambiguous_match'],
    response: { status: 200, schema: attributed },
    handler: async ({ ctx, deps, appId, keyKind, body, now }) => {
      await refuseFuture(deps, 'firstOpenAt', body.firstOpenAt, now);
      const codeEnteredAt = body.codeEnteredAt ?? now;
      await refuseFuture(deps, 'codeEnteredAt', codeEnteredAt, now);
      const code = body.affiliateCode ?? null;
      const address = body.deferred === true ? clientAddress(ctx, deps) : null;
      const result = await CALLS[keyKind].attribute(deps, {
        appId,
        deviceId: body.deviceId,
        claimToken: body.claimToken ?? null,
        // Affiliate ids have the format of a slug, too. Any other text is no code.
        affiliateCode: code !== null && isSlug(code) ? code : null,
        codeEnteredAt,
        firstOpenAt: body.firstOpenAt,
        deferred: address === null ? null : { address, now },
        sdk: asSdk(body.sdk),
      });
      const isExtended = body.acceptUnattributed === true;
      switch (result.kind) {
        case 'attributed': {
          const { attributionId, affiliateId, matchMethod } = result.attribution;
          const answer = { attributionId, affiliateId, matchMethod };
          return isExtended ? { ...answer, touch: result.touch } : answer;
        }
        case 'no_touch':
          if (isExtended) return UNATTRIBUTED;
          throw new ApiError('no_attributable_click');
        case 'ambiguous':
          throw new ApiError('ambiguous_match', {
            detail:
              'Clicks of several affiliates came from this address. Ask the user for a code, or send the claim token.',
          });
      }
    },
  }),

  route({
    method: 'POST',
    path: '/sdk/identify',
    caller: sdkKey({ addressLimit: 'identify' }),
    operationId: 'identifyUser',
    summary: "Binds the app's user id to the device's attribution.",
    description: `If the install has not been reported yet, the user id is stored and bound when it is. The answer is about the device, and says nothing about other devices of the user. A device can have 10 users. ${TEST_KEY}`,
    body: identify,
    errors: [
      'placeholder_user_id',
      'no_attribution',
      'too_many_users',
      'signature_required',
      'invalid_signature',
    ],
    response: { status: 200, schema: identified },
    handler: async ({ ctx, deps, appId, keyKind, body, now }) => {
      await refuseFuture(deps, 'identifiedAt', body.identifiedAt, now);
      if (isPlaceholder(body.customerUserId)) throw new ApiError('placeholder_user_id');
      const result = await CALLS[keyKind].identify(deps, {
        appId,
        deviceId: body.deviceId,
        customerUserId: body.customerUserId,
        identifiedAt: body.identifiedAt,
        signature: body.signature ?? null,
        address: clientAddress(ctx, deps),
        now,
      });
      const isExtended = body.acceptUnattributed === true;
      switch (result.kind) {
        case 'bound': {
          const { attributionId, affiliateId } = result;
          const answer = { attributionId, customerUserId: body.customerUserId };
          return isExtended ? { ...answer, affiliateId } : answer;
        }
        case 'no_attribution':
          if (!isExtended) throw new ApiError('no_attribution');
          return { attributionId: null, customerUserId: body.customerUserId, affiliateId: null };
        case 'signature_required':
          throw new ApiError('signature_required', { headers: { 'WWW-Authenticate': 'Bearer' } });
        default:
          throw new ApiError(result.kind);
      }
    },
  }),
];
