import {
  attributeDeferred,
  attributeDevice,
  findDeferredClicks,
  findInstallCandidates,
  recordLosingTouch,
} from '../db/attributions.ts';
import type { Attribution, RememberedUser } from '../db/attributions.ts';
import { bindRememberedUsers } from '../db/bindings.ts';
import { retryUntilVisible } from '../db/conflict-retries.ts';
import {
  chooseDeferredClick,
  chooseTouch,
  DEFERRED_LINKS_LIMIT,
  isSameTouch,
  touchOutcome,
} from '../domain/attribution.ts';
import type { TouchOutcome } from '../domain/attribution.ts';
import type { AppId } from '../domain/ids.ts';
import { MINUTE_MS } from '../domain/time.ts';
import type { CommandDeps } from './deps.ts';
import { isDeviceOfErasedUser } from './erased-device.ts';
import { healBinding } from './heal-binding.ts';

export interface Install {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly claimToken: string | null;
  readonly affiliateCode: string | null;
  /** Epoch ms, by the device's clock. */
  readonly firstOpenAt: number;
  /** When the code was entered; the time of the request if the client does not say. Epoch ms. */
  readonly codeEnteredAt: number;
  /** The client's address and the time of the request (epoch ms), if a deferred match is requested; else null. */
  readonly deferred: { readonly address: string; readonly now: number } | null;
  /** The SDK and its version, such as `web/0.1.0`. */
  readonly sdk: string | null;
}

export type InstallResult =
  | { readonly kind: 'attributed'; readonly attribution: Attribution; readonly touch: TouchOutcome }
  /** The deferred match found clicks of several affiliates. */
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'no_touch' };

/** One more than the attempts that can fail: each may lose a link's last click to another install. */
const ATTEMPTS = DEFERRED_LINKS_LIMIT + 10;

/**
 * Attributes a device to an affiliate. An existing attribution stays. Users that were identified on the device before are
 * bound to the attribution, and their earlier payments are re-evaluated.
 */
export async function attributeInstall(
  deps: Pick<CommandDeps, 'sql' | 'secretBox' | 'addressHasher' | 'workflows'>,
  install: Install,
): Promise<InstallResult> {
  if (await isDeviceOfErasedUser(deps, install.appId, install.deviceId)) return { kind: 'no_touch' };
  const result = await attribute(deps, install);
  if (result.kind !== 'attributed') return result;
  for (const bindingId of await bindRememberedUsers(deps.sql, install.appId, install.deviceId)) {
    await healBinding(deps, bindingId, install.appId);
  }
  return result;
}

/**
 * Finds or creates the attribution. A token or a code takes precedence; a deferred match is the last resort. A statement
 * that loses against another install of the device or with the same click is followed by another read, which decides.
 */
async function attribute(
  deps: Pick<CommandDeps, 'sql' | 'addressHasher'>,
  install: Install,
): Promise<InstallResult> {
  const { sql } = deps;
  const { appId, deviceId, firstOpenAt, codeEnteredAt, sdk } = install;
  return await retryUntilVisible(async (): Promise<InstallResult | undefined> => {
    const candidates = await findInstallCandidates(sql, install);
    const touch = chooseTouch({ ...candidates, deviceId, firstOpenAt, codeEnteredAt });
    const { attribution, rememberedUsers } = candidates;
    if (attribution !== null) {
      if (touch !== null && !isSameTouch(attribution, touch)) {
        await recordLosingTouch(sql, appId, deviceId, touch);
      }
      const isDeferred = install.deferred !== null;
      return { kind: 'attributed', attribution, touch: touchOutcome(attribution, touch, isDeferred) };
    }
    if (touch !== null) {
      const attributed = { appId, deviceId, firstOpenAt, sdk, rememberedUsers };
      const added = await attributeDevice(sql, attributed, touch);
      return added === null ? undefined : { kind: 'attributed', attribution: added, touch: 'won' };
    }
    const match = await matchDeferred(deps, install, candidates.deferredWindowMinutes, rememberedUsers);
    switch (match) {
      case 'lost':
        return undefined;
      case 'ambiguous':
        return { kind: 'ambiguous' };
      case 'none':
        return { kind: 'no_touch' };
      default:
        return { kind: 'attributed', attribution: match, touch: 'won' };
    }
  }, ATTEMPTS);
}

/** Tries to attribute the device to the newest click from the client's address. */
async function matchDeferred(
  { sql, addressHasher }: Pick<CommandDeps, 'sql' | 'addressHasher'>,
  { appId, deviceId, firstOpenAt, sdk, deferred }: Install,
  windowMinutes: number,
  rememberedUsers: readonly RememberedUser[],
): Promise<Attribution | 'lost' | 'ambiguous' | 'none'> {
  if (deferred === null || windowMinutes === 0) return 'none';
  const { address, now } = deferred;
  const hashes = await addressHasher.hashesOfInstall(appId, address, now, windowMinutes);
  const clicks = await findDeferredClicks(sql, appId, hashes);
  const match = chooseDeferredClick({ clicks, now, windowMinutes });
  if (match === null) return 'none';
  if (match === 'ambiguous') return 'ambiguous';
  const attributed = { appId, deviceId, firstOpenAt, sdk, rememberedUsers };
  return (await attributeDeferred(sql, attributed, match, now - windowMinutes * MINUTE_MS)) ?? 'lost';
}
