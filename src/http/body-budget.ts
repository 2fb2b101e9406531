import { addressBlock } from '../domain/addresses.ts';
import { ApiError } from './errors.ts';

/** Bodies up to this size are not counted: the limit of connections already bounds them. */
const SMALL_BODY_BYTES = 32 * 1024;
const TOTAL_BYTES = 64 * 1024 * 1024;
const ADDRESS_BYTES = 8 * 1024 * 1024;
const RETRY_AFTER_SECONDS = 1;

/** Bounds the memory that the bodies of requests take while they are received and verified. */
export interface BodyBudget {
  /**
   * Reserves memory for a body of at most `bytes` bytes from an address. Returns a function that frees it; a second call
   * of it does nothing. Throws 503 when the address or all addresses together hold too much.
   */
  readonly reserve: (address: string, bytes: number) => () => void;
}

/** Creates the budget of a process. */
export function createBodyBudget({
  totalBytes = TOTAL_BYTES,
  addressBytes = ADDRESS_BYTES,
}: { readonly totalBytes?: number; readonly addressBytes?: number } = {}): BodyBudget {
  let total = 0;
  const held = new Map<string, number>();
  return {
    reserve: (address, bytes) => {
      if (bytes <= SMALL_BODY_BYTES) return () => {};
      const caller = addressBlock(address) ?? address;
      const before = held.get(caller) ?? 0;
      if (total + bytes > totalBytes || before + bytes > addressBytes) {
        throw new ApiError('unavailable', {
          detail: 'Too many large bodies are being received. Wait for `Retry-After` seconds.',
          headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
        });
      }
      total += bytes;
      held.set(caller, before + bytes);
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        total -= bytes;
        const left = (held.get(caller) ?? 0) - bytes;
        if (left > 0) held.set(caller, left);
        else held.delete(caller);
      };
    },
  };
}
