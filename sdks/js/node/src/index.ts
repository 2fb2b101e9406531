import { createHash, randomUUID } from 'node:crypto';
import {
  asReferral,
  createClient,
  createLog,
  describe,
  inTime,
  readTarget,
  referralFrom as readReferral,
  stateName,
  UNNAMED,
} from '../../core/src/index.ts';
import type {
  AppOptions,
  CommonOptions,
  DebugState,
  Halt,
  OwnClient,
  Platform,
  Referral,
  Storage,
} from '../../core/src/index.ts';

export { fileStorage } from './file-storage.ts';
export type { FileStorageOptions } from './file-storage.ts';
/** Returns the referral in the query of an address of any scheme, with the keys that it has, or undefined if it has none. */
export function referralFrom(url: string | URL): Referral | undefined {
  const referral = readReferral(url);
  return referral && (JSON.parse(JSON.stringify(referral)) as Referral);
}
export type { DebugState, Referral, Storage };

declare const VERSION: string;

export interface TributaryOptions extends CommonOptions, AppOptions {}

/** The calls for one device. Nothing throws or rejects. */
export interface Device {
  /** Binds the app's user id to the attribution. Resolves true once it is bound. */
  identify(userId: string, options?: { readonly signature?: string }): Promise<boolean>;
  /** Takes the referral of an address (`claim_token`, `via`). Resolves true if the service accepted it. */
  attribute(url: string | URL): Promise<boolean>;
  /** Takes a code that a user entered. Resolves true if the service knows the code. */
  applyCode(code: string): Promise<boolean>;
  attributedAffiliateId(): Promise<string | null>;
  /** Returns what the SDK knows of the device, without personal data. Null without a key or a base address. */
  debugState(): Promise<DebugState | null>;
  /** Deletes everything that is stored about the device. */
  reset(): Promise<void>;
  /** Deletes everything and sends nothing until it is enabled again. Anything but true is false. */
  setEnabled(enabled: boolean): Promise<void>;
}

export interface Signup {
  /** The user id that the billing provider reports. */
  readonly userId: string;
  readonly signature?: string | undefined;
  readonly code?: string | undefined;
  readonly claimToken?: string | undefined;
  /** The address that the visitor arrived at. */
  readonly url?: string | URL | undefined;
  /** What `deviceId()` of the Web SDK returns, if it runs in the visitor's browser: both then report one installation. */
  readonly deviceId?: string | null | undefined;
}

export interface Tributary {
  /** Returns the calls for the device with this id, which the app assigns, such as the value of its visitor cookie. */
  device(deviceId: string): Device;
  /** Reports a sign-up. Resolves to the affiliate of the user, or null if there is none or it is not known yet. */
  trackSignup(signup: Signup): Promise<{ affiliateId: string } | null>;
  /**
   * Waits until everything is delivered or failed once, at most this long. After ten devices that failed it tries no more. Resolves
   * true if nothing is left to deliver. Call it before a serverless function ends.
   */
  flush(timeoutMs: number): Promise<boolean>;
}

/** How many devices are kept in memory, and how many more for which something waits. The longest unused one is forgotten first. */
const MAX_DEVICES = 10_000;
/** How many devices `flush` delivers at a time, and after how many that failed it gives up: the service is then down. */
const FLUSHED_AT_ONCE = 10;
const MAX_DEVICE_ID_LENGTH = 200;

const nodePlatform: Platform = {
  sdk: `node/${VERSION}`,
  fetch: (url, init) => fetch(url, init),
  now: Date.now,
  random: Math.random,
  newId: randomUUID,
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** How long a server sends nothing after the answer that its key or host is wrong. It may run for months without a start. */
const MISCONFIGURED_MS = 3_600_000;

/** Finds a touch or a user that waits in a stored state. */
const WAITING = /"touches":\[\{|"status":"pending"/;

/** Returns what all devices of an instance share. */
function createHalt(now: () => number): Halt {
  let misconfiguredUntil = 0;
  return {
    notBefore: 0,
    retryMs: MISCONFIGURED_MS,
    get isMisconfigured() {
      const left = misconfiguredUntil - now();
      // After the clock was set back nothing is known.
      return left > 0 && left <= MISCONFIGURED_MS;
    },
    set isMisconfigured(value) {
      misconfiguredUntil = value ? now() + MISCONFIGURED_MS : 0;
    },
  };
}

/** Remembers nothing: the state of a device lives as long as its client. */
const noStorage: Storage = { get: () => null, set: () => {}, remove: () => {} };

/** Returns the storage, with one line in the log at the first write that fails. */
function reporting(storage: Storage, warn: (line: string) => void): Storage {
  let isReported = false;
  const report = async (write: () => unknown) => {
    try {
      await write();
    } catch (error) {
      if (!isReported)
        warn(`The storage cannot be written. New devices live in memory only: ${String(error)}`);
      isReported = true;
      throw error;
    }
  };
  return {
    get: (key) => storage.get(key),
    set: (key, value) => report(() => storage.set(key, value)),
    remove: (key) => report(() => storage.remove(key)),
    keys: () => storage.keys?.() ?? [],
  };
}

function signupReferral({ code, claimToken, url }: Signup): Referral | undefined {
  const given = asReferral(claimToken, code);
  const arrived = url ? referralFrom(url) : undefined;
  // What is empty, or has no valid form, does not hide what the address has.
  return asReferral(given?.claimToken ?? arrived?.claimToken, given?.code ?? arrived?.code);
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Returns the device id of a user who signed up without a device. With a signature, only who knows the identity secret can tell it, so nobody
 * can report an install of it before the sign-up.
 */
function deviceOfUser(userId: string, signature?: string): string {
  if (signature) return `srv_${sha256(signature)}`;
  const id = `srv_${userId}`;
  return id.length <= MAX_DEVICE_ID_LENGTH ? id : `srv_${sha256(userId)}`;
}

/**
 * Creates the SDK for a server. The key and the base address default to the environment variables `TRIBUTARY_SDK_KEY`
 * and `TRIBUTARY_API_BASE_URL`. If one is missing, it logs one line and every call resolves to false or null.
 */
export function createTributary(
  given?: TributaryOptions,
  platform = nodePlatform,
  maxDevices = MAX_DEVICES,
): Tributary {
  const options = given ?? {};
  const { env } = process;
  const log = createLog(options);
  const target = readTarget(
    {
      apiKey: options.apiKey ?? env['TRIBUTARY_SDK_KEY'],
      apiBaseUrl: options.apiBaseUrl ?? env['TRIBUTARY_API_BASE_URL'],
    },
    log.warn,
  );
  /** Begins the storage keys of the devices. */
  const prefix = `${stateName(options)}.`;
  const storage = reporting(options.storage ?? noStorage, log.warn);
  const halt = createHalt(platform.now);
  const clients = new Map<string, Promise<OwnClient | undefined>>();
  /** The clients of longer unused devices for which something waits, or waited when their place was needed. */
  const waiting = new Map<string, Promise<OwnClient | undefined>>();
  let isFullReported = false;

  async function load(deviceId: string): Promise<OwnClient | undefined> {
    if (!target || typeof deviceId !== 'string' || deviceId === '') return undefined;
    const key = prefix + deviceId;
    let text: string | null | undefined;
    let unnamedText: string | null = null;
    try {
      text = await inTime(platform, storage.get(key));
      if (options.app) unnamedText = await inTime(platform, storage.get(`${UNNAMED}.${deviceId}`));
    } catch {
      log.warn('The storage cannot be read. The state of this device lives in memory only.');
    }
    const client = createClient(
      platform,
      {
        ...target,
        ...log,
        key,
        storage,
        deviceId,
        deferredMatch: options.deferredMatch ?? false,
        onAttribution: options.onAttribution,
        halt,
      },
      text,
      unnamedText,
    );
    client.start([]);
    return client;
  }

  function clientOf(deviceId: string): Promise<OwnClient | undefined> {
    const client = clients.get(deviceId) ?? waiting.get(deviceId) ?? load(deviceId);
    clients.delete(deviceId);
    waiting.delete(deviceId);
    clients.set(deviceId, client);
    for (const [oldest, unused] of clients) {
      if (clients.size <= maxDevices) break;
      clients.delete(oldest);
      void keepWaiting(oldest, unused);
    }
    return client;
  }

  /** Keeps an unused client as long as something waits, and there is room. */
  async function keepWaiting(deviceId: string, unused: Promise<OwnClient | undefined>): Promise<void> {
    waiting.set(deviceId, unused);
    for (const [oldest, opening] of waiting) {
      if (waiting.size <= maxDevices) break;
      waiting.delete(oldest);
      const client = await opening;
      if (!client?.isWaiting()) continue;
      client.stop();
      if (!isFullReported)
        log.warn(
          `More than ${2 * maxDevices} devices wait for the service. Memory forgets the oldest, a storage keeps them until the next start.`,
        );
      isFullReported = true;
    }
    const client = await unused;
    if (!client?.isWaiting() && waiting.get(deviceId) === unused) waiting.delete(deviceId);
  }

  /** Delivers what an earlier process left in the storage, device by device. */
  async function resume(): Promise<void> {
    try {
      for (const key of (target && (await storage.keys?.())) || []) {
        if (!key.startsWith(prefix) || !WAITING.test((await storage.get(key)) ?? '')) continue;
        await (await clientOf(key.slice(prefix.length)))?.idle();
      }
    } catch {
      log.warn(
        'The storage cannot be read. What an earlier process left is sent with the next call of its device.',
      );
    }
  }
  const resumed = resume();

  const device = (deviceId: string): Device => ({
    identify: async (userId, given) =>
      (await (await clientOf(deviceId))?.identify(userId, given?.signature)) ?? false,
    attribute: async (url) => (await (await clientOf(deviceId))?.refer(referralFrom(url), false)) ?? false,
    applyCode: async (code) =>
      (await (await clientOf(deviceId))?.refer(asReferral(undefined, code), true)) ?? false,
    attributedAffiliateId: async () => (await clientOf(deviceId))?.current().affiliateId ?? null,
    debugState: async () => describe((await clientOf(deviceId))?.inspect()),
    reset: async () => {
      const client = await clientOf(deviceId);
      client?.reset();
      await client?.idle();
    },
    setEnabled: async (enabled) => {
      const client = await clientOf(deviceId);
      client?.setEnabled(enabled);
      await client?.idle();
    },
  });

  return {
    device,
    trackSignup: async (signup) => {
      if (typeof signup?.userId !== 'string' || signup.userId === '') {
        log.warn('trackSignup: the user id must be a text of 1 to 512 characters.');
        return null;
      }
      const client = await clientOf(signup.deviceId || deviceOfUser(signup.userId, signup.signature));
      if (!client) return null;
      const referral = signupReferral(signup);
      // Both are queued before anything is awaited, so that the user follows the touch in any case.
      const identify = () => client.identify(signup.userId, signup.signature);
      const [isAccepted, isKnown] = await Promise.all([
        client.refer(referral, asReferral(undefined, signup.code) !== undefined),
        identify(),
      ]);
      // A user for whom nobody was found before is reported again after the touch.
      const isBound = isKnown || (isAccepted && (await identify()));
      const { affiliateId } = client.current();
      return isBound && affiliateId !== null ? { affiliateId } : null;
    },
    flush: async (timeoutMs) => {
      const deliver = async () => {
        await resumed;
        const openings = [...waiting.values(), ...clients.values()].values();
        let failed = 0;
        const work = async () => {
          for (const opening of openings) {
            if (failed >= FLUSHED_AT_ONCE) return;
            const client = await opening;
            await client?.deliver();
            if (client?.isWaiting()) failed += 1;
          }
        };
        await Promise.all(Array.from({ length: FLUSHED_AT_ONCE }, work));
        return failed === 0;
      };
      let cancel = () => {};
      const timeout = new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        cancel = () => clearTimeout(timer);
      });
      const isDelivered = await Promise.race([deliver(), timeout]);
      cancel();
      return isDelivered === true;
    },
  };
}
