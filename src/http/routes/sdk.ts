import {
  attributeDeferred,
  attributeDevice,
  findDeferredClicks,
  findInstallCandidates,
  recordLosingTouch,
} from '../../db/attributions.ts';
import type { Attribution, RememberedUser } from '../../db/attributions.ts';
import { bindRememberedUsers, bindUser, markHealedIfNothingWaits } from '../../db/bindings.ts';
import { retryUntilVisible } from '../../db/repeat-after-race.ts';
import {
  chooseDeferredClick,
  chooseTouch,
  DEFERRED_LINKS_LIMIT,
  isInFuture,
  isSameTouch,
} from '../../domain/attribution.ts';
import type { AppId, BindingId } from '../../domain/ids.ts';
import { isSlug } from '../../domain/slugs.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, invalidField } from '../errors.ts';
import { requesterAddress } from '../requester.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/tracking.ts';

interface Install {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly claimToken: string | null;
  readonly affiliateCode: string | null;
  readonly firstOpenAt: number;
  /** Where and when the install was reported, when it asks for a deferred match; else null. */
  readonly requester: { readonly address: string; readonly now: number } | null;
}

/** Tries to give the device a click of its requester's address. False when there is none. */
async function matchDeferred(
  { sql, addressHasher }: HttpDeps,
  { appId, deviceId, firstOpenAt, requester }: Install,
  windowMinutes: number,
  rememberedUsers: readonly RememberedUser[],
): Promise<boolean> {
  if (requester === null || windowMinutes === 0) return false;
  const { address, now } = requester;
  const hashes = await addressHasher.hashesOfInstall(appId, address, now, windowMinutes);
  const clicks = await findDeferredClicks(sql, appId, hashes);
  const match = chooseDeferredClick({ clicks, now, windowMinutes });
  if (match === null) return false;
  if (match === 'ambiguous') {
    throw new ApiError('ambiguous_match', {
      detail: 'This address clicked links of several affiliates. Ask for a code, or send the claim token.',
    });
  }
  const attributed = { appId, deviceId, firstOpenAt, rememberedUsers };
  await attributeDeferred(sql, attributed, match, now - windowMinutes * MINUTE_MS);
  return true;
}

/** Each look of an install may lose a link's last click to another install, until no link is left. */
const LOOKS = DEFERRED_LINKS_LIMIT + 10;

/**
 * The attribution of a device: the one it has, or the one that this install gives it; undefined when there is nothing to
 * attribute it to. A token or a code decides first, and a deferred match is the last resort of an install that asks for
 * it. Each statement may lose against another install of the same device or with the same click, so what counts is what
 * the next look shows.
 */
async function attribute(deps: HttpDeps, install: Install): Promise<Attribution | undefined> {
  const { sql } = deps;
  const { appId, deviceId, firstOpenAt } = install;
  const { attribution } = await retryUntilVisible(async () => {
    const candidates = await findInstallCandidates(sql, install);
    const touch = chooseTouch({ ...candidates, deviceId, firstOpenAt });
    const { attribution: winner, rememberedUsers } = candidates;
    if (winner !== null) {
      if (touch !== null && !isSameTouch(winner, touch)) await recordLosingTouch(sql, appId, deviceId, touch);
      return { attribution: winner };
    }
    if (touch !== null) {
      await attributeDevice(sql, { appId, deviceId, firstOpenAt, rememberedUsers }, touch);
      return undefined;
    }
    const tried = await matchDeferred(deps, install, candidates.deferredWindowMinutes, rememberedUsers);
    return tried ? undefined : { attribution: undefined };
  }, LOOKS);
  return attribution;
}

/** Has the earlier payments of a user looked at again where there may be some. Runs after the binding was committed. */
async function heal({ sql, work }: HttpDeps, bindingId: BindingId): Promise<void> {
  if (!(await markHealedIfNothingWaits(sql, bindingId))) work.healBinding(bindingId);
}

export const sdkRoutes = [
  route({
    method: 'POST',
    path: '/sdk/install',
    auth: 'sdk',
    permission: null,
    operationId: 'attributeInstall',
    summary: 'Attributes an install to an affiliate. The first attribution of a device stays.',
    body: schemas.install,
    errors: ['no_attributable_click', 'ambiguous_match'],
    rateLimit: { name: 'sdk', caller: ({ caller, body }) => `${caller.appId} ${body.deviceId}` },
    response: { status: 200, schema: schemas.attributed },
    handler: async ({ ctx, deps, caller, body, now }) => {
      const { deviceId, firstOpenAt } = body;
      if (isInFuture(firstOpenAt, now)) throw invalidField('firstOpenAt', 'Lies in the future.');
      const code = body.affiliateCode ?? null;
      const address = body.deferred === true ? requesterAddress(ctx, deps) : null;
      const attribution = await attribute(deps, {
        appId: caller.appId,
        deviceId,
        claimToken: body.claimToken ?? null,
        // Affiliate ids have the form of a slug, too; whatever has not is a code that nobody has.
        affiliateCode: code !== null && isSlug(code) ? code : null,
        firstOpenAt,
        requester: address === null ? null : { address, now },
      });
      if (attribution === undefined) throw new ApiError('no_attributable_click');
      for (const bindingId of await bindRememberedUsers(deps.sql, caller.appId, deviceId))
        await heal(deps, bindingId);
      const { attributionId, affiliateId, matchMethod } = attribution;
      return { attributionId, affiliateId, matchMethod };
    },
  }),

  route({
    method: 'POST',
    path: '/sdk/identify',
    auth: 'sdk',
    permission: null,
    operationId: 'identifyUser',
    summary: "Binds the app's user id to the device's attribution, now or when its install arrives.",
    body: schemas.identify,
    errors: ['no_attribution'],
    rateLimit: { name: 'sdk', caller: ({ caller, body }) => `${caller.appId} ${body.deviceId}` },
    response: { status: 200, schema: schemas.identified },
    handler: async ({ deps, caller, body, now }) => {
      const { deviceId, customerUserId, identifiedAt } = body;
      if (isInFuture(identifiedAt, now)) throw invalidField('identifiedAt', 'Lies in the future.');
      const binding = await bindUser(deps.sql, caller.appId, deviceId, customerUserId, identifiedAt);
      if (binding === undefined) throw new ApiError('no_attribution');
      if (binding.isNew) await heal(deps, binding.bindingId);
      return { attributionId: binding.attributionId, customerUserId };
    },
  }),
];
