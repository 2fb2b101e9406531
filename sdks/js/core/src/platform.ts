export type MaybePromise<T> = T | Promise<T>;

/** Keeps texts by key. `get` returns null for a key without a value; it throws or rejects if it cannot know. */
export interface Storage {
  get(key: string): MaybePromise<string | null>;
  set(key: string, value: string): MaybePromise<void>;
  remove(key: string): MaybePromise<void>;
  /** Returns all keys. With it, the Node SDK delivers after a start what an earlier process could not deliver. */
  keys?(): MaybePromise<readonly string[]>;
}

/** What the client needs of its runtime. The conformance tests replace the clock, the timers and the randomness. */
export interface Platform {
  /** The name and version of the SDK, such as `web/0.1.0`. */
  readonly sdk: string;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Returns the time of the device, epoch ms. */
  readonly now: () => number;
  /** Returns a number from 0 (included) to 1 (excluded). */
  readonly random: () => number;
  /** Returns a UUID v4 from a secure source. */
  readonly newId: () => string;
  /** Calls `run` once after `ms`. Returns a function that cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
}

const STORAGE_TIMEOUT_MS = 5_000;

/** Returns what a storage answers. Rejects after five seconds: a storage that never answers must not block the calls. */
export function inTime<T>(platform: Platform, answer: MaybePromise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = platform.after(STORAGE_TIMEOUT_MS, () =>
      reject(new Error('The storage does not answer.')),
    );
    Promise.resolve(answer).finally(cancel).then(resolve, reject);
  });
}

/** Returns a UUID v4. `crypto.randomUUID` is missing on pages without TLS and in React Native. */
export function uuid(randomBytes: (bytes: Uint8Array<ArrayBuffer>) => unknown): string {
  const bytes = new Uint8Array(31);
  randomBytes(bytes);
  let index = 0;
  // A 0 becomes any digit, and the 8 one from 8 to b.
  return '00000000-0000-4000-8000-000000000000'.replace(/[08]/g, (place) =>
    (+place | (bytes[index++]! & (place === '8' ? 3 : 15))).toString(16),
  );
}
