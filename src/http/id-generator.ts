import { createHmac, randomBytes } from 'node:crypto';
import { TypeID } from 'typeid-js';
import { ID_PREFIXES } from '../domain/ids.ts';
import type { Id, IdKind } from '../domain/ids.ts';

/** The length of a seed, bytes. */
export const ID_SEED_BYTES = 32;

/**
 * Generates the ids, keys and slugs of a call. Generators with the same seed and time return the same values in the same
 * order, so a call that runs again after a crash finds the rows of its first run and does not create them twice.
 * What a handler generates, and in which order, must therefore depend on the request alone.
 */
export interface IdGenerator {
  /** Returns a UUIDv7 of the generator's time. Ids of one generator sort in the order of the calls. */
  id<K extends IdKind>(kind: K): Id<K>;
  /** Returns random bytes, at most 32. */
  bytes(length: number): Buffer;
}

/** Creates a generator with the seed `given` at `at` (epoch ms). Without a seed its values are unique. */
export function createIdGenerator(at: number, given?: Buffer): IdGenerator {
  let seed = given;
  let drawn = 0;
  const draw = () => {
    drawn += 1;
    seed ??= randomBytes(ID_SEED_BYTES);
    return createHmac('sha256', seed).update(String(drawn)).digest();
  };
  return {
    id: (kind) => {
      const bytes = draw().subarray(0, 16);
      bytes.writeUIntBE(at, 0, 6);
      // Version 7 with the number of draws in the 12 bits after it, then variant 2.
      bytes.writeUInt16BE(0x7000 | (drawn & 0x0fff), 6);
      bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
      return TypeID.fromUUIDBytes(ID_PREFIXES[kind], bytes).toString() as string as Id<typeof kind>;
    },
    bytes: (length) => draw().subarray(0, length),
  };
}
