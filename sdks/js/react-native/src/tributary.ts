import AsyncStorage from '@react-native-async-storage/async-storage';
import { AppState, Linking } from 'react-native';
import { createClient, createLog, readTarget, referralFrom } from '../../core/src/index.ts';
import type { CommonOptions, OwnClient, Storage } from '../../core/src/index.ts';
import { platform } from './platform.ts';

export type StartOptions = CommonOptions;

/** The calls of the SDK. Nothing throws or rejects. */
export interface Tributary {
  /**
   * Starts the SDK, takes the link that opened the app, and listens for links. Does not wait for the network. Resolves
   * false without a key or a base address.
   */
  start(options?: string | StartOptions): Promise<boolean>;
  /** Binds the app's user id to the attribution. Resolves true once it is bound. */
  identify(userId: string, options?: { readonly signature?: string }): Promise<boolean>;
  /** Takes the referral of an address (`claim_token`, `via`). Resolves true if the service accepted it. */
  attribute(url: string | URL): Promise<boolean>;
  /** Takes a code that a user entered. Resolves true if the service knows the code. */
  applyCode(code: string): Promise<boolean>;
  attributedAffiliateId(): Promise<string | null>;
  /** Deletes everything that is stored. */
  reset(): Promise<void>;
  /** Deletes everything and sends nothing until it is enabled again. */
  setEnabled(enabled: boolean): Promise<void>;
}

const KEY = 'tributary';
const MAX_CALLS = 20;
/** How long the start waits for the link that opened the app, ms. A later one is still taken. */
const LINK_TIMEOUT_MS = 1_000;

const appStorage: Storage = {
  get: (key) => AsyncStorage.getItem(key),
  set: (key, value) => AsyncStorage.setItem(key, value),
  remove: (key) => AsyncStorage.removeItem(key),
};

/** Calls React Native, which throws if one of its native modules is missing. */
async function attempt(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch {
    // The SDK works without links and without the foreground, too.
  }
}

/** Creates the SDK of an app. */
export function createTributary(): Tributary {
  let opening: Promise<OwnClient> | undefined;
  let calls: ((started: OwnClient) => unknown)[] = [];

  /** Makes a call, or keeps it until the start. */
  async function call<T>(run: (started: OwnClient) => T | Promise<T>, otherwise: T): Promise<T> {
    if (opening) return await run(await opening);
    if (calls.length < MAX_CALLS) calls.push(run);
    return otherwise;
  }

  async function open(options: StartOptions, target: { apiKey: string; host: string }): Promise<OwnClient> {
    const log = createLog(options);
    const storage = options.storage ?? appStorage;
    const links: ((started: OwnClient) => unknown)[] = [];
    let client: OwnClient | undefined;
    const take = (url: string | null) => {
      const referral = referralFrom(url ?? '');
      const refer = (started: OwnClient) => started.refer(referral, false);
      if (client) void refer(client);
      else links.push(refer);
    };
    // An app that was opened by a link may be opened by another one later.
    void attempt(() => Linking.addEventListener('url', ({ url }) => take(url)));
    const firstLink = attempt(async () => take(await Linking.getInitialURL()));
    let text: string | null | undefined;
    try {
      text = await storage.get(KEY);
    } catch {
      // Unreadable: the client works from memory.
    }
    await new Promise<void>((resolve) => {
      const cancel = platform.after(LINK_TIMEOUT_MS, resolve);
      void firstLink.then(() => {
        cancel();
        resolve();
      });
    });
    const started = createClient(
      platform,
      {
        ...target,
        ...log,
        key: KEY,
        storage,
        deferredMatch: options.deferredMatch ?? true,
        onAttribution: options.onAttribution,
      },
      text,
    );
    client = started;
    started.start([...links, ...calls]);
    calls = [];
    void attempt(() => AppState.addEventListener('change', (state) => state === 'active' && started.retry()));
    return started;
  }

  return {
    start: async (given) => {
      if (opening) {
        (await opening).start([]);
        return true;
      }
      const options = typeof given === 'string' ? { apiKey: given } : (given ?? {});
      const target = readTarget(options, createLog(options).warn);
      if (!target) return false;
      opening = open(options, target);
      await opening;
      return true;
    },
    identify: (userId, given) => call((started) => started.identify(userId, given?.signature), false),
    attribute: (url) => call((started) => started.attribute(url), false),
    applyCode: (code) => call((started) => started.applyCode(code), false),
    attributedAffiliateId: async () => (opening ? (await opening).attributedAffiliateId() : null),
    reset: () =>
      call(async (started) => {
        started.reset();
        await started.saved();
      }, undefined),
    setEnabled: (enabled) =>
      call(async (started) => {
        started.setEnabled(enabled);
        await started.saved();
      }, undefined),
  };
}
