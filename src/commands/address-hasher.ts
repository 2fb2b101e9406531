import { createHmac, randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { SecretUnreadable } from '../config/secret-box.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { addAddressKey, addressKeyContext, findAddressKey } from '../db/address-keys.ts';
import type { AddressKey } from '../db/address-keys.ts';
import type { Sql } from '../db/sql.ts';
import { addressBlock, addressKeyDay, addressKeyDays } from '../domain/addresses.ts';
import type { AppId } from '../domain/ids.ts';
import { DAY_MS } from '../domain/time.ts';

/**
 * Hashes client addresses with the key of the day. Equal hashes show that a click and an install came from the same
 * address and reveal nothing else. Hashes of two apps or two days can't be compared.
 */
export interface AddressHasher {
  /** Returns the hash for a click at `at`, or null if `address` is no address or the day's key can't be read. */
  hashOfClick(appId: AppId, address: string, at: number): Promise<Buffer | null>;
  /** Returns the hashes of clicks from this address, one for each day in the window that ends at `now`. */
  hashesOfInstall(
    appId: AppId,
    address: string,
    now: number,
    windowMinutes: number,
  ): Promise<readonly Buffer[]>;
}

const KEY_BYTES = 32;

function hash(key: Buffer, appId: AppId, block: string): Buffer {
  return createHmac('sha256', key).update(`${appId} ${block}`).digest();
}

/** Creates a hasher with the keys in the database, which all processes share. It caches the keys of recent days. */
export function createAddressHasher(deps: {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
}): AddressHasher {
  const { sql, secretBox, logger } = deps;
  /** By the start of the day. Null for a stored key that can't be read. */
  const keys = new Map<number, Buffer | null>();

  function open({ ciphertext, encryptionKeyId, dayStartsAt }: AddressKey): Buffer | null {
    try {
      const context = addressKeyContext(dayStartsAt);
      return Buffer.from(secretBox.decrypt(Buffer.from(ciphertext), encryptionKeyId, context), 'base64');
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      // The redirect must work without a key. The next day gets a key that can be read.
      logger.error({
        err: error,
        msg: "no deferred match for the clicks of a day: the day's key can't be read",
      });
      return null;
    }
  }

  /** Makes the key of a day. Null while this process may encrypt nothing: another one then makes it. */
  function seal(day: number): ReturnType<SecretBox['encrypt']> | null {
    try {
      return secretBox.encrypt(randomBytes(KEY_BYTES).toString('base64'), addressKeyContext(day));
    } catch (error) {
      if (error instanceof SecretUnreadable) return null;
      throw error;
    }
  }

  async function find(day: number): Promise<Buffer | null | undefined> {
    const known = keys.get(day);
    if (known !== undefined) return known;
    const stored = await findAddressKey(sql, day);
    if (stored === undefined) return undefined;
    for (const old of keys.keys()) if (old < day - DAY_MS) keys.delete(old);
    const key = open(stored);
    keys.set(day, key);
    return key;
  }

  async function findOrCreate(day: number): Promise<Buffer | null | undefined> {
    const found = await find(day);
    if (found !== undefined) return found;
    const sealed = seal(day);
    if (sealed === null) return null;
    await addAddressKey(sql, { dayStartsAt: day, ...sealed });
    // Another process may have stored a key first. The stored key applies.
    return await find(day);
  }

  return {
    async hashOfClick(appId, address, at) {
      const block = addressBlock(address);
      if (block === null) return null;
      const key = await findOrCreate(addressKeyDay(at));
      return key ? hash(key, appId, block) : null;
    },
    async hashesOfInstall(appId, address, now, windowMinutes) {
      const block = addressBlock(address);
      if (block === null) return [];
      const found = await Promise.all(addressKeyDays(now, windowMinutes).map(find));
      return found.flatMap((key) => (key ? [hash(key, appId, block)] : []));
    },
  };
}
