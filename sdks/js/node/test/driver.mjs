// Connects the scenarios to the Node SDK: everything is real but the clock, the timers, the randomness and the storage. Connects
// the mutants also to the code of the React Native SDK, which has a start: its runtime is in `globalThis.tributaryApp`.
import { setImmediate } from 'node:timers/promises';
import { createFakeClock } from '../../../conformance/fake-clock.mjs';
import { deviceId, START } from '../../../conformance/play.mjs';

const DEVICE = 'device-1';

/** What the Node SDK can do beyond the rules for every SDK. */
export const ABILITIES = [
  'deferredOffByDefault',
  'asyncStorage',
  'storageLimit',
  'app',
  'debugState',
  'otherOptions',
];

/** What the React Native SDK can do beyond the rules for every SDK. */
export const APP_ABILITIES = [
  'start',
  'foreground',
  'asyncStorage',
  'storageLimit',
  'deferredOnByDefault',
  'debugState',
  'otherOptions',
];

/** Returns a driver of `createTributary`, of the Node SDK or (`isApp`) of the React Native SDK. */
export function createDriver(createTributary, isApp = false) {
  let clock;
  let options;
  let values;
  let mode;
  let inFlight;
  let logged;
  let device;
  let ids;
  let held = () => 0;
  let process = new AbortController();
  const keyOf = ({ app }) => {
    const name = app ? `tributary-${app}` : 'tributary';
    return isApp ? name : `${name}.${DEVICE}`;
  };

  const check = (refused) => {
    if (mode === refused) throw new Error(`The storage is ${mode}.`);
  };
  const storage = {
    get: async (key) => {
      check('unreadable');
      return values.get(key) ?? null;
    },
    set: async (key, value) => {
      check('unwritable');
      while (mode === 'stuck') await setImmediate();
      values.set(key, value);
    },
    remove: async (key) => {
      check('unwritable');
      values.delete(key);
    },
  };

  /** Counts a request until its body was read. */
  const countingFetch = async (url, init) => {
    const { signal } = process;
    const end = () => {
      if (!signal.aborted) inFlight -= 1;
    };
    inFlight += 1;
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.any([init.signal, signal]) });
      const { status, headers } = response;
      return { status, headers, text: () => response.text().finally(end) };
    } catch (error) {
      end();
      // A process that ended learns nothing.
      if (signal.aborted) await new Promise(() => {});
      throw error;
    }
  };

  const settled = async () => {
    for (let quiet = 0; quiet < 4;) {
      await setImmediate();
      quiet = inFlight === held() ? quiet + 1 : 0;
    }
  };

  const create = () => {
    const { random = 0 } = options;
    const platform = {
      sdk: 'node/0.1.0',
      fetch: countingFetch,
      now: clock.now,
      random: () => random,
      newId: () => deviceId((ids += 1)),
      after: clock.after,
    };
    if (isApp) {
      globalThis.tributaryApp = { platform, url: null, onAppState: () => {} };
      device = createTributary();
    } else device = createTributary(options, platform).device(DEVICE);
  };

  return {
    ...(!isApp && { deviceId: () => DEVICE }),
    begin: ({ host, options: given, store, storage: storageMode }) => {
      clock = createFakeClock(START);
      values = new Map(store === null ? [] : [[keyOf({}), store]]);
      ids = 0;
      device = undefined;
      mode = storageMode;
      process = new AbortController();
      inFlight = 0;
      logged = [];
      const { throwingCallbacks, deferredMatch = isApp ? false : undefined, ...rest } = given;
      const fail = () => {
        throw new Error('The host app is broken.');
      };
      options = {
        apiKey: 'pk_live_test',
        apiBaseUrl: host,
        logger: throwingCallbacks ? fail : (line) => logged.push(line),
        onAttribution: throwingCallbacks ? fail : () => {},
        storage,
        ...rest,
        // Null stands for an option that is not given.
        deferredMatch: deferredMatch ?? undefined,
      };
    },
    start: async (url) => {
      if (isApp) {
        if (!device) create();
        globalThis.tributaryApp.url ??= url;
        return await device.start(options);
      }
      create();
      // Opens the device.
      await device.attributedAffiliateId();
      if (url) void device.attribute(url);
      return true;
    },
    call: (name, ...arguments_) => {
      if (!device) create();
      return device[name](...arguments_);
    },
    advance: (ms) => clock.advance(ms, settled),
    clock: (ms) => clock.shift(ms),
    restart: (other) => {
      options = { ...options, ...other };
      process.abort();
      process = new AbortController();
      inFlight = 0;
      device = undefined;
      clock.clear();
    },
    end: () => process.abort(),
    storage: (next) => {
      mode = next;
    },
    event: () => globalThis.tributaryApp?.onAppState('active'),
    stored: () => values.get(keyOf(options)) ?? null,
    warnings: () => logged.length,
    settled: async (currentlyHeld) => {
      held = currentlyHeld;
      await settled();
    },
  };
}
