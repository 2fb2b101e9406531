import { uuid } from '../../core/src/index.ts';
import type { Platform } from '../../core/src/index.ts';

declare const VERSION: string;

/**
 * Fills the bytes from a secure source if the app has one (`crypto.getRandomValues`); React Native itself has none. The
 * `Math.random` of Hermes has 31 bits of state, so it alone would give two devices the same id: the clocks are mixed in.
 */
function fill(bytes: Uint8Array<ArrayBuffer>): void {
  const { crypto, performance } = globalThis as Partial<typeof globalThis>;
  if (crypto?.getRandomValues) {
    crypto.getRandomValues(bytes);
    return;
  }
  const sinceBoot = (performance?.now() ?? 0) * 1e6;
  for (let index = 0; index < bytes.length; index += 1) {
    // The id takes four bits of each byte.
    const clocks = (Date.now() / 16 ** index) ^ (sinceBoot / 16 ** (bytes.length - 1 - index));
    bytes[index] = (Math.random() * 256) ^ clocks;
  }
}

/** Returns an address as the systems report it: host in lower case, no default port. */
const normal = (url: string) =>
  url.toLowerCase().replace(/^(https:\/\/[^/]+):443\/|^(http:\/\/[^/]+):80\//, '$1$2/');

/** Returns the response. Throws if another address gave it. */
function assertOwn(url: string, response: Response): Response {
  if (response.url && normal(response.url) !== normal(url)) throw new Error('The request was redirected.');
  return response;
}

export const platform: Platform = {
  sdk: `react-native/${VERSION}`,
  // React Native follows every redirect, whatever `redirect` says, and repeats the body after a 307 or 308. So it asks without a
  // body first, as a browser does, and sends the body only to an address that answered itself.
  fetch: async (url, init) => {
    const { credentials, signal } = init;
    assertOwn(url, await fetch(url, { method: 'OPTIONS', credentials, signal } as RequestInit));
    return assertOwn(url, await fetch(url, init));
  },
  now: () => Date.now(),
  random: () => Math.random(),
  newId: () => uuid(fill),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
