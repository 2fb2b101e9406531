import { createHmac, randomBytes } from 'node:crypto';
import { TypeID } from 'typeid-js';
import { ID_PREFIXES } from '../domain/ids.ts';
import type { Id, IdKind } from '../domain/ids.ts';

/** How many random bytes a mint is made of. */
export const MINT_SEED_BYTES = 32;

/**
 * Makes what a call has to make up: ids, keys, slugs. A mint of the same seed and time makes the same things in the same
 * order, so a call that is run again after a crash finds what its first run has written instead of making it twice. So
 * what a handler draws, and in which order, must not depend on anything but the request.
 */
export interface Mint {
  /** An id: UUIDv7 of the mint's time. Ids of one mint sort in the order in which they were asked for. */
  id<K extends IdKind>(kind: K): Id<K>;
  /** Random bytes, at most 32. */
  bytes(length: number): Buffer;
}

/** A mint of `seed` at `at` (epoch ms). Without a seed it is a new one, unlike all others. */
export function createMint(at: number, seed: Buffer = randomBytes(MINT_SEED_BYTES)): Mint {
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
