import { bindUser } from '../db/bindings.ts';
import type { AppId, AttributionId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';
import { healBinding } from './heal-binding.ts';

export interface Identification {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly customerUserId: string;
  /** Epoch ms. */
  readonly identifiedAt: number;
}

/**
 * Binds a user id to the attribution of its device and re-evaluates the user's earlier payments. Returns the attribution
 * that the user belongs to, or null if the device has none; the pair is then stored and bound on install.
 */
export async function identifyUser(
  deps: Pick<CommandDeps, 'sql' | 'workflows'>,
  { appId, deviceId, customerUserId, identifiedAt }: Identification,
): Promise<AttributionId | null> {
  const binding = await bindUser(deps.sql, appId, deviceId, customerUserId, identifiedAt);
  if (binding === undefined) return null;
  if (binding.isNew) await healBinding(deps, binding.bindingId);
  return binding.attributionId;
}
