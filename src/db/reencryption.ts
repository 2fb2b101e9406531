import { SecretUnreadable } from '../config/secret-box.ts';
import type { SecretBox } from '../config/secret-box.ts';
import type { Fragment, Statements } from './sql.ts';

/** What a key of SECRETS_KEY has encrypted. */
export interface Encrypted {
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
}

/** Returns what decrypts a text, or null if it is unreadable in a way that its caller can do without. */
const decryptUnless =
  (isNull: (error: SecretUnreadable) => boolean) =>
  (secretBox: SecretBox, { ciphertext, encryptionKeyId }: Encrypted, context: string): string | null => {
    try {
      return secretBox.decrypt(Buffer.from(ciphertext), encryptionKeyId, context);
    } catch (error) {
      if (error instanceof SecretUnreadable && isNull(error)) return null;
      throw error;
    }
  };

/** Returns the decrypted text for a reader who can do without. Null if its key is missing, or if it was changed. */
export const decryptOrNull = decryptUnless(() => true);

/**
 * Returns the decrypted text for work whose result stays. Null if it is lost permanently: it was changed, or its key is missing and the operator
 * accepts that. Throws `SecretUnreadable` if its key is missing: another process may have it.
 */
export const decryptUnlessLost = decryptUnless(({ isLost }) => isLost);

/** A condition of SQL: whether nobody can read what the key with this id encrypted, because it is missing and the operator accepts that. */
export function isLostKey(
  sql: Statements,
  { keyIds, acceptsLostKeys }: Pick<SecretBox, 'keyIds' | 'acceptsLostKeys'>,
  keyId: Fragment,
): Fragment {
  return acceptsLostKeys ? sql.fragment`${keyId} <> all(${[...keyIds]}::text[])` : sql.fragment`false`;
}

/** A kind of rows that are encrypted. */
export interface EncryptedRows<Row extends Encrypted> {
  /** Returns the next rows that a key has encrypted, after the last one of the page before, in the order of an index. */
  readonly pageOf: (encryptionKeyId: string, after: Row | null) => Promise<readonly Row[]>;
  readonly contextOf: (row: Row) => string;
  /** Stores what was encrypted again, in rows that still have the former key. */
  readonly store: (rows: readonly { readonly row: Row; readonly sealed: Encrypted }[]) => Promise<unknown>;
}

/**
 * Encrypts with the first key the rows that a former one encrypted, page by page, so that the former key can be removed. Leaves alone what
 * cannot be decrypted. Several processes may do so at the same time. Ends after a page when the signal is aborted.
 */
export async function reencrypt<Row extends Encrypted>(
  secretBox: SecretBox,
  { pageOf, contextOf, store }: EncryptedRows<Row>,
  signal?: AbortSignal,
): Promise<void> {
  const [, ...former] = secretBox.keyIds;
  for (const keyId of former) {
    let page = await pageOf(keyId, null);
    while (page.length > 0) {
      if (signal?.aborted === true) return;
      const rows = page.flatMap((row) => {
        const text = decryptOrNull(secretBox, row, contextOf(row));
        return text === null ? [] : [{ row, sealed: secretBox.encrypt(text, contextOf(row)) }];
      });
      if (rows.length > 0) await store(rows);
      page = await pageOf(keyId, page.at(-1) ?? null);
    }
  }
}
