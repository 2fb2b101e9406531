import {
  asReferral,
  createClient,
  createLog,
  deviceIdOf,
  readTarget,
  referralFrom,
  stateName,
  UNNAMED,
  uuid,
} from '../../core/src/index.ts';
import type { AppOptions, Client, CommonOptions, DebugState, Platform } from '../../core/src/index.ts';
import { pageStorage } from './storage.ts';
import type { SyncStorage } from './storage.ts';

export type { SyncStorage };

declare const VERSION: string;

export interface StartOptions extends Omit<CommonOptions, 'storage'>, AppOptions {
  /** Where the state is kept. The default is `localStorage`. */
  readonly storage?: SyncStorage | undefined;
  /** Whether to remove `claim_token` from the address bar. On by default. */
  readonly cleanUrl?: boolean | undefined;
}

/** The calls of the SDK. Nothing throws or rejects. */
export interface Tributary {
  /** Starts the SDK and reads the referral of the page's address. Resolves false without a key or a base address. */
  start(options?: string | StartOptions): Promise<boolean>;
  /** Binds the app's user id to the attribution. Resolves true once it is bound. */
  identify(userId: string, options?: { readonly signature?: string }): Promise<boolean>;
  /** Takes the referral of an address (`claim_token`, `via`). Resolves true if the service accepted it. */
  attribute(url: string | URL): Promise<boolean>;
  /** Takes a code that a user entered. Resolves true if the service knows the code. */
  applyCode(code: string): Promise<boolean>;
  attributedAffiliateId(): string | null;
  /** Returns the id of this browser, for `trackSignup` of the Node SDK. Null before the start and without a consent. */
  deviceId(): string | null;
  /** Loads a file and resolves to what the SDK knows, without personal data. Null before the start, or if the file can't be loaded. */
  debugState(): Promise<DebugState | null>;
  /** Deletes everything that is stored. */
  reset(): void;
  /**
   * The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals wait in
   * memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything. Anything but true is false.
   */
  setEnabled(enabled: boolean): void;
}

const MAX_CALLS = 20;

const browser: Platform = {
  sdk: `web/${VERSION}`,
  fetch: (url, init) => fetch(url, init),
  now: Date.now,
  random: Math.random,
  newId: () => uuid((bytes) => crypto.getRandomValues(bytes)),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Removes `claim_token` from the address bar, so that it is not copied or sent to other sites. */
function cleanAddress(): void {
  try {
    const { href, search } = location;
    const query = search.replace(/(^\?|&)claim_token=[^&]*/g, '').replace(/^&/, '?');
    if (query !== search)
      history.replaceState(
        history.state,
        '',
        href.replace(search, () => query),
      );
  } catch {
    // A sandboxed page may not change its address.
  }
}

/** Creates the SDK of a page. */
export function createTributary(): Tributary {
  let client: Client | undefined;
  let calls: ((started: Client) => unknown)[] = [];
  /** The last `setEnabled` before the start. */
  let consent: ((started: Client) => unknown)[] = [];
  let clean: () => unknown = () => {};

  /** Makes a call now, or keeps it until the start and returns undefined. */
  function call<T>(run: (started: Client) => T): T | undefined {
    if (client) return run(client);
    if (!calls[MAX_CALLS - 1]) calls.push(run);
    return undefined;
  }

  /** Makes a call now, or keeps it until the start and resolves false. */
  const ask = async (run: (started: Client) => Promise<boolean>) => (await call(run)) ?? false;

  const debug = async (isWatched?: boolean) => {
    try {
      const file = await import('./tributary-debug.js');
      return file.debugState(() => client?.inspect(), isWatched);
    } catch {
      return null;
    }
  };

  return {
    // oxlint-disable-next-line require-await -- Callers await the same type on every platform.
    start: async (given) => {
      const options = typeof given === 'string' ? { apiKey: given } : (given ?? {});
      if (client) {
        client.start([]);
        return true;
      }
      const log = createLog(options);
      const target = typeof window === 'undefined' ? undefined : readTarget(options, log.warn);
      if (!target) return false;
      const storage = options.storage ?? pageStorage;
      const key = stateName(options);
      let text: string | null | undefined;
      let unnamedText: string | null | undefined;
      try {
        unnamedText = storage.get(UNNAMED);
        text = storage.get(key);
      } catch {
        // Unreadable: the client works from memory.
      }
      const started = createClient(
        browser,
        {
          ...options,
          ...target,
          ...log,
          key,
          storage,
        },
        text,
        unnamedText,
      );
      client = started;
      const referral = referralFrom(location.href);
      started.start([...consent, (self) => self.refer(referral, false), ...calls]);
      calls = [];
      // Without a consent the address stays as it is.
      if (options.cleanUrl ?? true) clean = () => started.current().enabled && cleanAddress();
      clean();
      const retry = () => started.retry();
      addEventListener('online', retry);
      document.addEventListener('visibilitychange', () => document.hidden || retry());
      // Another page changed the state: reads it.
      addEventListener('storage', () => started.current());
      if (/[?&]tributary_debug/.test(location.search)) void debug(true);
      return true;
    },
    identify: (userId, given) => ask((started) => started.identify(userId, given?.signature)),
    attribute: (url) => ask((started) => started.refer(referralFrom(url), false)),
    applyCode: (code) => ask((started) => started.refer(asReferral(undefined, code), true)),
    attributedAffiliateId: () => client?.current().affiliateId ?? null,
    deviceId: () => deviceIdOf(client?.current()),
    debugState: debug,
    reset: () => {
      // It deletes the calls before it, too, so that there is always room for it.
      if (!client) calls = [];
      call((started) => started.reset());
    },
    setEnabled: (enabled) => {
      if (!client) consent = [(started) => started.setEnabled(enabled)];
      client?.setEnabled(enabled);
      clean();
    },
  };
}
