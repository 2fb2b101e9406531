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

export const platform: Platform = {
  sdk: `react-native/${VERSION}`,
  fetch: async (url, init) => {
    const response = await fetch(url, init);
    // React Native follows redirects whatever `redirect` says.
    if (response.url && !response.url.endsWith(url.slice(-12)))
      throw new Error('The request was redirected.');
    return response;
  },
  now: () => Date.now(),
  random: () => Math.random(),
  newId: () => uuid(fill),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
