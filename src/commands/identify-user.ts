import { bindUser } from '../db/bindings.ts';
import { identifierHasher } from '../db/erased-identifiers.ts';
import type { AffiliateId, AppId, AttributionId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';
import { healBinding } from './heal-binding.ts';
import { findUserIdProblem } from './verify-user-id.ts';

export interface Identification {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly customerUserId: string;
  /** Epoch ms. */
  readonly identifiedAt: number;
  /** Hex HMAC-SHA256 of the user id. Null if the caller sent none. */
  readonly signature: string | null;
  /** The caller's address. Null if it is unknown. */
  readonly address: string | null;
  /** When the request arrived, epoch ms. */
  readonly now: number;
}

export type IdentificationResult =
  /** The attribution of the device. It does not say whether the user is bound to it or to another one, or was erased. */
  | { readonly kind: 'bound'; readonly attributionId: AttributionId; readonly affiliateId: AffiliateId }
  /** The pair is stored, and bound when the install of the device is reported. Of an erased user, nothing is stored. */
  | { readonly kind: 'no_attribution' }
  | { readonly kind: 'too_many_users' }
  /** The app verifies user ids, and the signature is missing or wrong. Nothing is stored. */
  | { readonly kind: 'signature_required' }
  | { readonly kind: 'invalid_signature' };

/**
 * Binds a user id to the attribution of its device and re-evaluates the user's earlier payments. Returns the attribution of the
 * device, or why there is none. The SDK key is public, so the result says nothing about the user.
 */
export async function identifyUser(
  deps: Pick<CommandDeps, 'sql' | 'secretBox' | 'addressHasher' | 'workflows'>,
  identification: Identification,
): Promise<IdentificationResult> {
  const { appId, deviceId, customerUserId, identifiedAt, address, now } = identification;
  const problem = await findUserIdProblem(deps, identification);
  if (problem !== null) return { kind: problem };
  const addressHash = address === null ? null : await deps.addressHasher.hashOfClick(appId, address, now);
  const userHash = (await identifierHasher(deps.sql, deps.secretBox))(appId, customerUserId);
  const identified = await bindUser(deps.sql, {
    appId,
    deviceId,
    customerUserId,
    identifiedAt,
    addressHash,
    userHash,
  });
  if (identified === undefined) return { kind: 'no_attribution' };
  if (identified === 'too_many_users') return { kind: 'too_many_users' };
  const { attributionId, affiliateId, newBindingId } = identified;
  if (newBindingId !== null) await healBinding(deps, newBindingId, appId);
  return { kind: 'bound', attributionId, affiliateId };
}
