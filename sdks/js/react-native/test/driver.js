// Connects the scenarios to the React Native SDK: its built file, the real JavaScript of React Native and AsyncStorage, and
// real HTTP. Only the clock, the timers, the randomness and the native modules are replaced.
import { createDevice } from './native.js';

const { kit } = global;
const { setImmediate } = global;

/** What the React Native SDK can do beyond the rules for every SDK. */
export const ABILITIES = [
  'start',
  'foreground',
  'asyncStorage',
  'storageLimit',
  'deferredOnByDefault',
  'debugState',
  'otherOptions',
];

/** Returns a driver of the SDK in a new app. */
export function createDriver() {
  const device = createDevice();
  const clock = kit.createFakeClock(kit.START);
  const logged = [];
  const originals = {
    now: Date.now,
    random: Math.random,
    setTimeout: global.setTimeout,
    clearTimeout: global.clearTimeout,
    crypto: global.crypto,
  };
  let ids = 0;
  let options;
  let sdk;
  let isStarted = false;
  let held = () => 0;

  const settled = async () => {
    for (let quiet = 0; quiet < 6;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = device.inFlight() === held() ? quiet + 1 : 0;
    }
  };
  const process = () => (sdk ??= device.launch());

  return {
    begin: ({ host, options: given, store, storage }) => {
      const { throwingCallbacks, random = 0, deferredMatch = false, ...rest } = given;
      const fail = () => {
        throw new Error('The app is broken.');
      };
      options = {
        apiKey: 'pk_live_test',
        apiBaseUrl: host,
        logger: throwingCallbacks ? fail : (line) => logged.push(line),
        onAttribution: throwingCallbacks ? fail : () => {},
        ...rest,
        // Null stands for an option that is not given.
        ...(deferredMatch !== null && { deferredMatch }),
      };
      if (store !== null) device.values.set('tributary', store);
      device.storage = storage;
      Date.now = clock.now;
      Math.random = () => random;
      global.setTimeout = (run, ms) => (ms > 0 ? clock.after(ms, run) : setImmediate(run));
      global.clearTimeout = (cancel) => typeof cancel === 'function' && cancel();
      Object.defineProperty(global, 'crypto', {
        configurable: true,
        value: { getRandomValues: (bytes) => bytes.fill(0).fill((ids += 1), -1) },
      });
    },
    start: async (url) => {
      if (!isStarted) device.initialUrl = url;
      isStarted = true;
      return await process().start(options);
    },
    call: (name, ...given) => process()[name](...given),
    advance: (ms) => clock.advance(ms, settled),
    clock: (ms) => clock.shift(ms),
    restart: (other) => {
      options = { ...options, ...other };
      device.kill();
      clock.clear();
      sdk = undefined;
      isStarted = false;
    },
    storage: (mode) => {
      device.storage = mode;
    },
    event: (name) => {
      if (name === 'foreground') device.setAppState('active');
    },
    stored: () => device.values.get('tributary') ?? null,
    warnings: () => logged.length,
    settled: async (currentlyHeld) => {
      held = currentlyHeld;
      await settled();
    },
    end: () => {
      device.kill();
      Date.now = originals.now;
      Math.random = originals.random;
      global.setTimeout = originals.setTimeout;
      global.clearTimeout = originals.clearTimeout;
      Object.defineProperty(global, 'crypto', { configurable: true, value: originals.crypto });
    },
  };
}
