import AsyncStorage from '@react-native-async-storage/async-storage';
import { AppState, Linking, Platform } from 'react-native';
import {
  asReferral,
  createClient,
  createLog,
  describe,
  deviceIdOf,
  inTime,
  readTarget,
  referralFrom,
  referralFromQuery,
} from '../../core/src/index.ts';
import type { CommonOptions, DebugState, OwnClient, Referral, Storage } from '../../core/src/index.ts';
import { platform } from './platform.ts';

export interface StartOptions extends CommonOptions {
  /**
   * Returns the install referrer of Google Play, such as `getInstallReferrerAsync` of expo-application. Called on Android, once per
   * installation.
   */
  readonly installReferrer?: (() => Promise<string | null | undefined>) | undefined;
}

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
  /** Returns the id of this installation, for `trackSignup` of the Node SDK. Null before the start and without a consent. */
  deviceId(): Promise<string | null>;
  /** Returns what the SDK knows, without personal data. Null before the start. */
  debugState(): Promise<DebugState | null>;
  /** Deletes everything that is stored. */
  reset(): Promise<void>;
  /**
   * The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals wait in
   * memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything. Anything but true is false.
   */
  setEnabled(enabled: boolean): Promise<void>;
}

const KEY = 'tributary';
/** Its presence means that Google Play answered, or that a reset came first. */
const REFERRER_KEY = 'tributary.referrer';
/** Finds a refusal in a stored state. */
const REFUSED = /"enabled":false(?!.*"isUndecided":true)/;
const MAX_CALLS = 20;
/** How long the start waits for the link that opened the app and for the install referrer, ms. A later one is still taken. */
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
  /** The last `setEnabled` before the start. */
  let consent: ((started: OwnClient) => unknown)[] = [];

  /** A reset ends the install referrer: it would attribute the next person to the link of the first. */
  let isReferrerOver = false;
  let endReferrer = async () => {};

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
    const refer = (call: (started: OwnClient) => unknown) => {
      if (client) void call(client);
      else links.push(call);
    };
    const take = (url: string | null) => {
      const referral = referralFrom(url ?? '');
      refer((started) => started.refer(referral, false));
    };
    endReferrer = async () => {
      isReferrerOver = true;
      if (options.installReferrer) await attempt(() => storage.set(REFERRER_KEY, '1'));
    };
    const takeReferrer = (referral: Referral | undefined) =>
      refer(async (started) => {
        if (isReferrerOver) return;
        void started.refer(referral, false);
        // While the consent is undecided the referral is in memory only, and Play is asked again.
        if (!started.current().enabled) return;
        await started.saved();
        // A referral that is not stored is asked for again at the next start.
        const [, , , isStored] = started.inspect();
        if (isStored) await endReferrer();
      });
    /** Asks Google Play. What fails is asked again at the next start. */
    const askReferrer = async () => {
      if (Platform.OS !== 'android' || !options.installReferrer || REFUSED.test(text ?? '')) return;
      if ((await storage.get(REFERRER_KEY)) !== null) return;
      takeReferrer(referralFromQuery((await options.installReferrer()) ?? ''));
    };
    // An app that was opened by a link may be opened by another one later.
    void attempt(() => Linking.addEventListener('url', ({ url }) => take(url)));
    const firstLink = attempt(async () => take(await Linking.getInitialURL()));
    let text: string | null | undefined;
    try {
      text = await inTime(platform, storage.get(KEY));
    } catch {
      // Unreadable: the client works from memory.
    }
    const referrer = attempt(askReferrer);
    await new Promise<void>((resolve) => {
      const cancel = platform.after(LINK_TIMEOUT_MS, resolve);
      void Promise.all([firstLink, referrer]).then(() => {
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
    started.start([...consent, ...links, ...calls]);
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
    attribute: (url) => call((started) => started.refer(referralFrom(url), false), false),
    applyCode: (code) => call((started) => started.refer(asReferral(undefined, code), true), false),
    attributedAffiliateId: async () => (opening ? (await opening).current().affiliateId : null),
    deviceId: async () => deviceIdOf((await opening)?.current()),
    debugState: async () => describe((await opening)?.inspect()),
    reset: () => {
      // It deletes the calls before it, too, so that there is always room for it.
      if (!opening) calls = [];
      return call(async (started) => {
        started.reset();
        await started.saved();
        await endReferrer();
      }, undefined);
    },
    setEnabled: async (enabled) => {
      const run = async (started: OwnClient) => {
        started.setEnabled(enabled);
        await started.saved();
      };
      if (opening) await run(await opening);
      else consent = [run];
    },
  };
}
