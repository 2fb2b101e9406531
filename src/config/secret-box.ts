import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** Encrypts secrets that must be read again, and hashes tokens that must not. */
export interface SecretBox {
  /** Encrypts under the first key. `context` names the owner of the secret; `decrypt` needs the same value. */
  encrypt(plain: string, context: string): { readonly ciphertext: Buffer; readonly encryptionKeyId: string };
  /** The ids of the keys, the encrypting one first. */
  readonly keyIds: readonly string[];
  /** Whether the operator says that a key which is missing is lost (`LOST_KEYS=accept`). */
  readonly acceptsLostKeys: boolean;
  /** Throws `SecretUnreadable` when the key is missing, the ciphertext was changed, or the context differs. */
  decrypt(ciphertext: Buffer, encryptionKeyId: string, context: string): string;
  /** Returns a keyed hash that names its key, so that it can be checked after another key has become the first. */
  tokenHash(token: string): string;
  /**
   * Whether `hash` is the hash of `token` under the key that it names. Compares in constant time. Throws `SecretUnreadable` when that
   * key is missing: nobody can say then.
   */
  matchesTokenHash(token: string, hash: string): boolean;
}

/** A stored secret can't be decrypted with the configured keys. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
  /**
   * Whether nobody can read it any more: it was changed, or the operator accepts that its key is lost. If not, a process that has
   * the key can, so work that needs the secret is tried again.
   */
  readonly isLost: boolean;

  constructor(message: string, { isLost, cause }: { readonly isLost: boolean; readonly cause?: unknown }) {
    super(message, { cause });
    this.isLost = isLost;
  }
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface BoxKey {
  readonly id: string;
  readonly encryption: Buffer;
  readonly hashing: Buffer;
}

function derive(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `tributary ${purpose}`, 32));
}

function boxKey(key: Buffer): BoxKey {
  if (key.length !== 32) throw new RangeError('a key of the secret box must have 32 bytes');
  const id = createHash('sha256').update(derive(key, 'key id')).digest('hex').slice(0, 12);
  return { id, encryption: derive(key, 'encryption'), hashing: derive(key, 'token hash') };
}

function hash(key: BoxKey, token: string): Buffer {
  return createHmac('sha256', key.hashing).update(token).digest();
}

/** The text of a hash: the id of its key and 32 bytes. */
const TOKEN_HASH = /^[0-9a-f]{12}:[0-9a-f]{64}$/;

/** Creates a box that encrypts with the first of `keys` and decrypts with all of them. AES-256-GCM; keys of 32 bytes. */
export function createSecretBox(
  keys: readonly Buffer[],
  { acceptsLostKeys = false }: { readonly acceptsLostKeys?: boolean } = {},
): SecretBox {
  const all = keys.map(boxKey);
  const [first] = all;
  if (first === undefined) throw new RangeError('the secret box needs at least one key');
  const keyOf = (id: string): BoxKey => {
    const found = all.find((key) => key.id === id);
    if (found !== undefined) return found;
    throw new SecretUnreadable(`SECRETS_KEY lacks the key ${id}, which a stored secret needs`, {
      isLost: acceptsLostKeys,
    });
  };

  return {
    encrypt(plain, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', first.encryption, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return { ciphertext: Buffer.concat([nonce, sealed, cipher.getAuthTag()]), encryptionKeyId: first.id };
    },
    keyIds: all.map((key) => key.id),
    acceptsLostKeys,
    decrypt(ciphertext, encryptionKeyId, context) {
      const key = keyOf(encryptionKeyId);
      try {
        const nonce = ciphertext.subarray(0, NONCE_BYTES);
        const decipher = createDecipheriv('aes-256-gcm', key.encryption, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(context));
        decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
        const sealed = ciphertext.subarray(NONCE_BYTES, -TAG_BYTES);
        return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8');
      } catch (error) {
        throw new SecretUnreadable('a stored secret was changed or belongs to another owner', {
          isLost: true,
          cause: error,
        });
      }
    },
    tokenHash: (token) => `${first.id}:${hash(first, token).toString('hex')}`,
    matchesTokenHash(token, tokenHash) {
      if (!TOKEN_HASH.test(tokenHash)) return false;
      const [id = '', hex = ''] = tokenHash.split(':');
      return timingSafeEqual(hash(keyOf(id), token), Buffer.from(hex, 'hex'));
    },
  };
}
