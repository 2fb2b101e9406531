import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server';
import { decodeAttestationObject, isoBase64URL } from '@simplewebauthn/server/helpers';
import { SecretUnreadable } from '../config/secret-box.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { findPasskey } from '../db/passkeys.ts';
import type { AnsweredChallenge, PasskeyUse } from '../db/passkeys.ts';
import type { Sql } from '../db/sql.ts';
import type { MemberId, SessionId } from '../domain/ids.ts';
import { CREDENTIAL_ID_BYTES, MOST_PUBLIC_KEY_BYTES, PASSKEY_CHALLENGE_MS } from '../domain/passkeys.ts';
import { ERRORS } from './error-codes.ts';
import { ApiError, withAdvice } from './errors.ts';
import type { AddedPasskey, PasskeyAnswer } from './passkey-fields.ts';

/** For which service passkeys are: a browser offers and uses them on its pages alone. */
interface RelyingParty {
  /** The host of `PUBLIC_URL`. */
  readonly id: string;
  readonly origin: string;
}

/** The signatures that are verified, by their COSE numbers: ES256, which all authenticators have, and RS256, for those of Windows. */
export const PASSKEY_ALGORITHMS = [-7, -257];

/** Returns for which service passkeys are. Null if browsers allow none at its address: they need https and the name of a host. */
function relyingParty(publicUrl: string): RelyingParty | null {
  const { protocol, hostname, origin } = new URL(publicUrl);
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost');
  const isAddress = isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0;
  return isAddress || (protocol !== 'https:' && !isLocal) ? null : { id: hostname, origin };
}

/** Whether browsers allow passkeys at the address of the service. */
export const allowsPasskeys = (publicUrl: string): boolean => relyingParty(publicUrl) !== null;

/** The same. Throws 409 if browsers allow none. */
export function relyingPartyOrThrow(publicUrl: string): RelyingParty {
  const found = relyingParty(publicUrl);
  if (found === null) throw withAdvice('passkeys_not_possible');
  return found;
}

/** What a challenge is for. That of a session counts for this session alone. */
export type ChallengePurpose =
  | { readonly kind: 'sign_in' }
  | { readonly kind: 'add' | 'raise'; readonly sessionId: SessionId };

const contextOf = (purpose: ChallengePurpose): string =>
  `passkey challenge ${purpose.kind}${purpose.kind === 'sign_in' ? '' : ` ${purpose.sessionId}`}`;

const RANDOM_BYTES = 32;
/** The length of the id of a key of the secret box. */
const KEY_ID_LENGTH = 12;

/**
 * Returns a challenge in base64url. It holds its end, encrypted, so that nothing is stored for callers who never answer it; the answer
 * is stored, so that a challenge is answered once.
 */
export function createChallenge(secretBox: SecretBox, purpose: ChallengePurpose, now: number): string {
  const text = `${now + PASSKEY_CHALLENGE_MS} ${randomBytes(RANDOM_BYTES).toString('base64url')}`;
  const { ciphertext, encryptionKeyId } = secretBox.encrypt(text, contextOf(purpose));
  return Buffer.concat([Buffer.from(encryptionKeyId), ciphertext]).toString('base64url');
}

/** Returns a challenge that this service made for the purpose and that can still be answered. Null for any other text. */
function readChallenge(
  secretBox: SecretBox,
  purpose: ChallengePurpose,
  challenge: string,
  now: number,
): AnsweredChallenge | null {
  const bytes = Buffer.from(challenge, 'base64url');
  // One challenge has one text, by which it is known as answered.
  if (bytes.toString('base64url') !== challenge) return null;
  const keyId = bytes.subarray(0, KEY_ID_LENGTH).toString('latin1');
  try {
    const text = secretBox.decrypt(bytes.subarray(KEY_ID_LENGTH), keyId, contextOf(purpose));
    const expiresAt = Number(text.split(' ')[0]);
    return expiresAt > now ? { challenge, expiresAt } : null;
  } catch (error) {
    if (error instanceof SecretUnreadable) return null;
    throw error;
  }
}

/** Returns the refusal of an answer, in the same words for every reason. */
export const refusedPasskey = (cause?: unknown): ApiError =>
  new ApiError('invalid_passkey', { detail: ERRORS.invalid_passkey[2], cause });

interface Verification {
  readonly publicUrl: string;
  readonly secretBox: SecretBox;
  readonly now: number;
}

/** Returns what the verification of an answer expects, and the challenge once it was found valid. */
function expectationOf(purpose: ChallengePurpose, { publicUrl, secretBox, now }: Verification) {
  const party = relyingPartyOrThrow(publicUrl);
  const answered: { challenge: AnsweredChallenge | null } = { challenge: null };
  return {
    answered,
    expected: {
      expectedChallenge: (challenge: string) => {
        answered.challenge = readChallenge(secretBox, purpose, challenge, now);
        return answered.challenge !== null;
      },
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
    },
  };
}

/** A credential whose answer to a challenge was verified. */
interface VerifiedCredential {
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly signCount: number;
  readonly answered: AnsweredChallenge;
}

/**
 * Throws for a new credential with a statement of its maker. Its certificates can be those of the caller, and the library fetches the lists
 * of revoked ones from the addresses in them, without a limit of time or size. None is asked for: browsers then send only what has no
 * certificates, which is no statement at all (`none`) or a signature with the key of the credential itself (`packed` without `x5c`).
 */
function refuseStatementOfMaker(attestationObject: string): void {
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(attestationObject));
  const format = attestation.get('fmt');
  if (format === 'none') return;
  if (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined) return;
  throw new Error('The credential has a statement of its maker.');
}

/** Verifies a new credential. Throws 403 for one that did not answer a challenge of the purpose on a page of this service. */
export async function verifyNewPasskey(
  { id, clientDataJSON, attestationObject }: Omit<AddedPasskey, 'name'>,
  purpose: ChallengePurpose,
  verification: Verification,
): Promise<VerifiedCredential> {
  const { answered, expected } = expectationOf(purpose, verification);
  const verify = async () => {
    refuseStatementOfMaker(attestationObject);
    return await verifyRegistrationResponse({
      response: {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: { clientDataJSON, attestationObject },
      },
      ...expected,
      supportedAlgorithmIDs: PASSKEY_ALGORITHMS,
    });
  };
  const result = await verify().catch((error: unknown): never => {
    // Everything that the verification throws is about what the caller sent.
    throw refusedPasskey(error);
  });
  if (!result.verified || answered.challenge === null) throw refusedPasskey();
  const { credential } = result.registrationInfo;
  const credentialId = Buffer.from(credential.id, 'base64url');
  const publicKey = Buffer.from(credential.publicKey);
  // Nothing proves that an authenticator has made them: a program can send any bytes.
  const { least, most } = CREDENTIAL_ID_BYTES;
  const isIdOfCredential =
    credential.id === id && credentialId.length >= least && credentialId.length <= most;
  if (!isIdOfCredential || publicKey.length > MOST_PUBLIC_KEY_BYTES) throw refusedPasskey();
  return { credentialId, publicKey, signCount: credential.counter, answered: answered.challenge };
}

/**
 * Verifies the answer of a passkey: of any member, or of one. Throws 403 for one that is unknown, for the answer of another one, and for
 * an answer to no challenge of the purpose. Whether the challenge was answered before is for the statement that uses it.
 */
export async function verifyPasskey(
  sql: Sql,
  { id, clientDataJSON, authenticatorData, signature, userHandle }: PasskeyAnswer,
  purpose: ChallengePurpose,
  verification: Verification & { readonly memberId?: MemberId },
): Promise<PasskeyUse> {
  const { answered, expected } = expectationOf(purpose, verification);
  const passkey = await findPasskey(sql, Buffer.from(id, 'base64url'), verification.now);
  if (passkey === undefined || (verification.memberId ?? passkey.memberId) !== passkey.memberId)
    throw refusedPasskey();
  // A browser that was given the credential need not name its user.
  const named = userHandle ?? (purpose.kind === 'sign_in' ? null : userHandleOf(passkey.memberId));
  if (named !== userHandleOf(passkey.memberId)) throw refusedPasskey();
  const result = await verifyAuthenticationResponse({
    response: {
      id,
      rawId: id,
      type: 'public-key',
      clientExtensionResults: {},
      response: { clientDataJSON, authenticatorData, signature },
    },
    ...expected,
    credential: {
      id,
      publicKey: new Uint8Array(passkey.publicKey),
      counter: passkey.signCount,
    },
  }).catch((error: unknown): never => {
    throw refusedPasskey(error);
  });
  if (!result.verified || answered.challenge === null) throw refusedPasskey();
  return { passkey, signCount: result.authenticationInfo.newCounter, ...answered.challenge };
}

/** Returns what an authenticator stores of a member: the id, which says nothing about the person. */
export const userHandleOf = (memberId: MemberId): string => Buffer.from(memberId).toString('base64url');
