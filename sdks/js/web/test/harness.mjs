// Runs in the page, before the SDK: replaces the clock, the timers and the randomness, and counts requests. The SDK is the
// built one, and storage, fetch and CORS are real.
import { createFakeClock } from '/conformance/fake-clock.mjs';

const realTimeout = window.setTimeout;
const realFetch = window.fetch;
const { getItem, setItem, removeItem } = Storage.prototype;
const saved = JSON.parse(sessionStorage.getItem('harness') ?? '{}');
const clock = createFakeClock(saved.now);
const logged = [];
let ids = saved.ids;
let inFlight = 0;
/** Requests that nobody waits for any more and that the server still holds: Chromium goes on with them for half a minute. */
let givenUp = await window.heldRequests();
let tributary;

const remember = () => {
  const text = JSON.stringify({ ...saved, now: clock.now(), ids });
  setItem.call(sessionStorage, 'harness', text);
};
Date.now = clock.now;
Math.random = () => saved.random;
window.setTimeout = (run, ms) => clock.after(ms, run);
window.clearTimeout = (cancel) => cancel?.();
crypto.getRandomValues = (bytes) => {
  ids += 1;
  remember();
  return bytes.fill(0).fill(ids, -1);
};
window.fetch = async (...given) => {
  inFlight += 1;
  const end = () => {
    inFlight -= 1;
  };
  try {
    const response = await realFetch(...given);
    const { status, headers } = response;
    return { status, headers, text: () => response.text().finally(end) };
  } catch (error) {
    end();
    if (given[1]?.signal?.aborted) givenUp += 1;
    throw error;
  }
};

const fail = () => {
  throw new Error('The page is broken.');
};
const macrotask = () => new Promise((resolve) => realTimeout(resolve, 0));

/** For how many looks a number of held requests stays the same until those of before have ended. */
const LOOKS = 100;

/** Resolves when every request is answered but those that the server holds. */
async function settled() {
  for (let quiet = 0, others = 0; quiet < 4;) {
    await macrotask();
    const held = await window.heldRequests();
    const isSettled = held === inFlight + givenUp;
    quiet = isSettled ? quiet + 1 : 0;
    others = isSettled || held < inFlight ? 0 : others + 1;
    if (others === LOOKS) givenUp = held - inFlight;
  }
}

window.harness = {
  setStorage: (mode) => {
    Storage.prototype.getItem = mode === 'unreadable' ? fail : getItem;
    Storage.prototype.setItem = mode === 'unwritable' ? fail : setItem;
    Storage.prototype.removeItem = mode === 'unwritable' ? fail : removeItem;
  },
  start: async ({ throwingCallbacks, ...options }) =>
    await tributary.start({
      ...options,
      logger: throwingCallbacks ? fail : (line) => logged.push(line),
      onAttribution: throwingCallbacks ? fail : () => {},
    }),
  call: (name, ...given) => tributary[name](...given),
  shift: (ms) => {
    clock.shift(ms);
    remember();
  },
  advance: async (ms) => {
    await clock.advance(ms, settled);
    remember();
  },
  settled,
  stored: (app) => getItem.call(localStorage, app ? `tributary-${app}` : 'tributary'),
  warnings: () => logged.length,
};
window.harness.setStorage(saved.storage);
tributary = await import('/dist/index.js');
window.isReady = true;
