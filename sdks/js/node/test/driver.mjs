// Connects the scenarios to the Node SDK: everything is real but the clock, the timers, the randomness and the storage.
import { setImmediate } from 'node:timers/promises';
import { createFakeClock } from '../../../conformance/fake-clock.mjs';
import { START } from '../../../conformance/play.mjs';

const DEVICE = 'device-1';
const KEY = `tributary.${DEVICE}`;

/** What the Node SDK can do beyond the rules for every SDK. */
export const ABILITIES = ['deferredOffByDefault', 'asyncStorage'];

/** Returns a driver of `createTributary`. */
export function createDriver(createTributary) {
  let clock;
  let options;
  let values;
  let mode;
  let inFlight;
  let logged;
  let device;
  let held = () => 0;
  let process = new AbortController();

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
      newId: () => 'unused',
      after: clock.after,
    };
    device = createTributary(options, platform).device(DEVICE);
  };

  return {
    deviceId: () => DEVICE,
    begin: ({ host, options: given, store, storage: storageMode }) => {
      clock = createFakeClock(START);
      values = new Map(store === null ? [] : [[KEY, store]]);
      mode = storageMode;
      process = new AbortController();
      inFlight = 0;
      logged = [];
      const { throwingCallbacks, ...rest } = given;
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
      };
    },
    start: async (url) => {
      create();
      // Opens the device.
      await device.attributedAffiliateId();
      if (url) void device.attribute(url);
      return true;
    },
    call: (name, ...arguments_) => device[name](...arguments_),
    advance: (ms) => clock.advance(ms, settled),
    clock: (ms) => clock.shift(ms),
    restart: () => {
      process.abort();
      process = new AbortController();
      inFlight = 0;
      clock.clear();
    },
    end: () => process.abort(),
    storage: (next) => {
      mode = next;
    },
    event: () => {},
    stored: () => values.get(KEY) ?? null,
    warnings: () => logged.length,
    settled: async (currentlyHeld) => {
      held = currentlyHeld;
      await settled();
    },
  };
}
