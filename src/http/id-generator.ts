import { createHmac, randomBytes } from 'node:crypto';
import { TypeID } from 'typeid-js';
import { ID_PREFIXES } from '../domain/ids.ts';
import type { Id, IdKind } from '../domain/ids.ts';

/** How many random bytes an id generator is made of. */
export const ID_SEED_BYTES = 32;

/**
 * Makes what a call has to make up: ids, keys, slugs. An id generator of the same seed and time makes the same things in the same
 * order, so a call that is run again after a crash finds what its first run has written instead of making it twice. So
 * what a handler draws, and in which order, must not depend on anything but the request.
 */
export interface IdGenerator {
  /** An id: UUIDv7 of the idGenerator's time. Ids of one idGenerator sort in the order in which they were asked for. */
  id<K extends IdKind>(kind: K): Id<K>;
  /** Random bytes, at most 32. */
  bytes(length: number): Buffer;
}

/** An id generator of `seed` at `at` (epoch ms). Without a seed it is a new one, unlike all others. */
export function createIdGenerator(at: number, seed: Buffer = randomBytes(ID_SEED_BYTES)): IdGenerator {
  let drawn = 0;
  const draw = () => {
    drawn += 1;
    return createHmac('sha256', seed).update(String(drawn)).digest();
  };
  return {
    id: (kind) => {
      const bytes = draw().subarray(0, 16);
      bytes.writeUIntBE(at, 0, 6);
      // Version 7, then how many were drawn before in the 12 bits after it; variant 2.
      bytes.writeUInt16BE(0x7000 | (drawn & 0x0fff), 6);
      bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
      return TypeID.fromUUIDBytes(ID_PREFIXES[kind], bytes).toString() as string as Id<typeof kind>;
    },
    bytes: (length) => draw().subarray(0, length),
  };
}
