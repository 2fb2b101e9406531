import { createHmac, timingSafeEqual } from 'node:crypto';
import { findVerifyingSecrets, identitySecretContext } from '../db/identity-secrets.ts';
import type { EncryptedSecret } from '../db/identity-secrets.ts';
import type { AppId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';

export interface SignedUserId {
  readonly appId: AppId;
  readonly customerUserId: string;
  /** Hex HMAC-SHA256 of the user id. Null if the caller sent none. */
  readonly signature: string | null;
  /** Epoch ms. */
  readonly now: number;
}

/**
 * Checks the signature of a user id, in constant time. Returns what is wrong with it; null if it is valid, or if the app does
 * not verify user ids. The key of the HMAC is the text of the secret. A secret is read only if the ones before it do not match. Throws
 * `SecretUnreadable` if that one cannot be read.
 */
export async function findUserIdProblem(
  { sql, secretBox }: Pick<CommandDeps, 'sql' | 'secretBox'>,
  { appId, customerUserId, signature, now }: SignedUserId,
): Promise<'signature_required' | 'invalid_signature' | null> {
  const secrets = await findVerifyingSecrets(sql, appId, now);
  if (secrets === null) return null;
  if (signature === null) return 'signature_required';
  const sent = Buffer.from(/^[0-9a-f]{64}$/i.test(signature) ? signature : '', 'hex');
  const matches = ({ ciphertext, encryptionKeyId }: EncryptedSecret) => {
    const secret = secretBox.decrypt(ciphertext, encryptionKeyId, identitySecretContext(appId));
    const expected = createHmac('sha256', secret).update(customerUserId).digest();
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  };
  return secrets.some(matches) ? null : 'invalid_signature';
}
