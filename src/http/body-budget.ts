import { addressSite } from '../domain/addresses.ts';
import { OPEN_BODY_BYTES } from './body-limits.ts';
import { ApiError } from './errors.ts';

/** Bodies up to this size are not counted: the limit of connections already bounds them. */
const SMALL_BODY_BYTES = OPEN_BODY_BYTES;
const TOTAL_BYTES = 64 * 1024 * 1024;
const SITE_BYTES = 8 * 1024 * 1024;
const RETRY_AFTER_SECONDS = 1;

/** The memory of one body. */
export interface BodyMemory {
  /** Reserves `bytes` in all for the body. Throws 503 when the address or all addresses together then hold too much. */
  readonly reserve: (bytes: number) => void;
  /** Frees all of it. A second call does nothing. */
  readonly free: () => void;
}

/** Bounds the memory that the bodies of requests take while they are received and verified. */
export interface BodyBudget {
  /** Returns the memory of a new body from an address. Nothing is reserved yet. */
  readonly open: (address: string) => BodyMemory;
}

/** Creates the budget of a process. `siteBytes` is the part of an address, or of the /56 of an IPv6 address. */
export function createBodyBudget({
  totalBytes = TOTAL_BYTES,
  siteBytes = SITE_BYTES,
}: { readonly totalBytes?: number; readonly siteBytes?: number } = {}): BodyBudget {
  let total = 0;
  const held = new Map<string, number>();
  const add = (site: string, bytes: number) => {
    total += bytes;
    const now = (held.get(site) ?? 0) + bytes;
    if (now > 0) held.set(site, now);
    else held.delete(site);
  };
  return {
    open: (address) => {
      const site = addressSite(address) ?? address;
      let own = 0;
      return {
        reserve: (bytes) => {
          const more = (bytes <= SMALL_BODY_BYTES ? 0 : bytes) - own;
          if (more > 0 && (total + more > totalBytes || (held.get(site) ?? 0) + more > siteBytes)) {
            throw new ApiError('unavailable', {
              detail: 'Too many large bodies are being received. Wait for `Retry-After` seconds.',
              headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
            });
          }
          own += more;
          add(site, more);
        },
        free: () => {
          add(site, -own);
          own = 0;
        },
      };
    },
  };
}
