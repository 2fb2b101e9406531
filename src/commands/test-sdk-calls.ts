import { findDeferredClicks, findInstallCandidates } from '../db/attributions.ts';
import { identifierHasher } from '../db/erased-identifiers.ts';
import { retryUntilVisible } from '../db/conflict-retries.ts';
import { attributeTestDevice, recordTestUser } from '../db/test-attributions.ts';
import { chooseDeferredClick, chooseTouch, touchOutcome } from '../domain/attribution.ts';
import type { Touch } from '../domain/attribution.ts';
import type { Install, InstallResult } from './attribute-install.ts';
import type { CommandDeps } from './deps.ts';
import { isDeviceOfErasedUser } from './erased-device.ts';
import type { Identification, IdentificationResult } from './identify-user.ts';
import { findUserIdProblem } from './verify-user-id.ts';

/**
 * Attributes a device that a test key reports, by the rules for live keys. Takes no click from a live install, binds no user
 * and re-evaluates nothing.
 */
export async function attributeTestInstall(
  deps: Pick<CommandDeps, 'sql' | 'secretBox' | 'addressHasher'>,
  install: Install,
): Promise<InstallResult> {
  const { sql } = deps;
  const { appId, deviceId, firstOpenAt, codeEnteredAt, sdk } = install;
  if (await isDeviceOfErasedUser(deps, appId, deviceId)) return { kind: 'no_touch' };
  return await retryUntilVisible(async (): Promise<InstallResult | undefined> => {
    const candidates = await findInstallCandidates(sql, install, 'test');
    const { attribution, deferredWindowMinutes } = candidates;
    const touch = chooseTouch({ ...candidates, deviceId, firstOpenAt, codeEnteredAt });
    if (attribution !== null) {
      return {
        kind: 'attributed',
        attribution,
        touch: touchOutcome(attribution, touch, install.deferred !== null),
      };
    }
    const chosen = touch ?? (await findDeferredTouch(deps, install, deferredWindowMinutes));
    if (chosen === null) return { kind: 'no_touch' };
    if (chosen === 'ambiguous') return { kind: 'ambiguous' };
    await attributeTestDevice(sql, { appId, deviceId, firstOpenAt, sdk }, chosen);
    return undefined;
  });
}

async function findDeferredTouch(
  { sql, addressHasher }: Pick<CommandDeps, 'sql' | 'addressHasher'>,
  { appId, deferred }: Install,
  windowMinutes: number,
): Promise<Touch | 'ambiguous' | null> {
  if (deferred === null || windowMinutes === 0) return null;
  const { address, now } = deferred;
  const hashes = await addressHasher.hashesOfInstall(appId, address, now, windowMinutes);
  const match = chooseDeferredClick({
    clicks: await findDeferredClicks(sql, appId, hashes),
    now,
    windowMinutes,
  });
  if (match === null || match === 'ambiguous') return match;
  const { affiliateId, linkId, clickedAt } = match;
  return { matchMethod: 'deferred', affiliateId, linkId, clickId: null, touchedAt: clickedAt };
}

/** Records a user whom a test key reports. Returns the test attribution of the device, or why there is none. Binds nothing. */
export async function identifyTestUser(
  deps: Pick<CommandDeps, 'sql' | 'secretBox'>,
  identification: Identification,
): Promise<IdentificationResult> {
  const { appId, customerUserId } = identification;
  const problem = await findUserIdProblem(deps, identification);
  if (problem !== null) return { kind: problem };
  const userHash = (await identifierHasher(deps.sql, deps.secretBox))(appId, customerUserId);
  const { isRecorded, attributionId, affiliateId } = await recordTestUser(deps.sql, {
    ...identification,
    userHash,
  });
  if (!isRecorded) return { kind: 'too_many_users' };
  return attributionId === null || affiliateId === null
    ? { kind: 'no_attribution' }
    : { kind: 'bound', attributionId, affiliateId };
}
