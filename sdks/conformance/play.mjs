// Plays a scenario against an SDK. A driver connects the player to one runtime: Node or a page in a browser.
//
// driver.begin({ host, options, store, storage })  a new device; nothing is started
// driver.start(url)                 starts the SDK with this address at launch; resolves to its result
// driver.call(name, ...arguments)   calls the public API
// driver.advance(ms)                moves the clock and runs the timers that become due
// driver.clock(ms)                  changes the clock of the device and runs no timer
// driver.restart(options)           ends the process; the storage stays. With `options`, the next one has these besides its own
// driver.storage(mode)              `ok`, `unreadable`, `unwritable`, or `stuck`: writes do not end
// driver.event(name)                `online` or `foreground`
// driver.stored()                   the stored text, or null
// driver.warnings()                 how many lines were logged
// driver.settled(held)              resolves when nothing moves but `held` requests
import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

/** The clock of the device at the beginning of each scenario. Times in scenarios are relative to it. */
export const START = Date.UTC(2026, 0, 1);
const TIMES = ['firstOpenAt', 'identifiedAt', 'codeEnteredAt', 'at', 'notBefore'];
const STEPS = new Set(
  'start,identify,applyCode,attribute,reset,setEnabled,affiliate,advance,clock,restart,storage,offline,online,foreground,release,sent,state,warnings,outcome,debug'.split(
    ',',
  ),
);

export const token = (digit) => {
  const [eight, four, three, twelve] = [8, 4, 3, 12].map((length) => String(digit).repeat(length));
  return `${eight}-${four}-4${three}-8${three}-${twelve}`;
};

export const deviceId = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** Reads all scenarios, in the order of their files. */
export function readScenarios() {
  const folder = new URL('scenarios/', import.meta.url);
  return readdirSync(folder)
    .toSorted()
    .flatMap((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')));
}

/** Replaces `$token1`, `$device1`, `$host` and relative times by their values. */
function resolve(value, context, key = '') {
  if (Array.isArray(value)) return value.map((item) => resolve(item, context));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, resolve(item, context, name)]),
    );
  if (typeof value === 'number') return TIMES.includes(key) ? START + value : value;
  if (typeof value !== 'string') return value;
  if (key === 'date' || key === 'retry-after')
    return value.replace(/^@(-?\d+)$/, (_, ms) => new Date(START + Number(ms)).toUTCString());
  return value
    .replace(/\$token(\d)/g, (_, digit) => token(digit))
    .replace(/\$device(\d)/g, (_, number) => context.deviceId(Number(number)))
    .replace(/\$prefix(\d)/g, (_, number) => context.deviceId(Number(number)).slice(0, 8))
    .replace(/\$host/g, context.host);
}

/** Whether `actual` has everything that `expected` states. Lists and nested objects must have the same size. */
function contains(actual, expected) {
  return Object.entries(expected).every(([name, value]) =>
    Array.isArray(value)
      ? actual?.[name]?.length === value.length &&
        value.every((item, index) =>
          typeof item === 'object' ? contains(actual[name][index], item) : item === actual[name][index],
        )
      : isDeepStrictEqual(actual?.[name], value),
  );
}

function assert(condition, message) {
  if (!condition) throw new Error(message);
}

/** Compares the requests. A first open, a code and a user have the time of the beginning, if none is stated. */
function expectRequests(received, expected, context) {
  const paths = received.map(({ path }) => path).join(', ');
  assert(
    received.length === expected.length,
    `expected ${expected.length} requests, got ${received.length}: ${paths}`,
  );
  for (const [index, line] of expected.entries()) {
    const [[path, { device = 1, apiKey = context.apiKey, ...fields }]] = Object.entries(line);
    const { sdk, ...body } = received[index].body;
    const installTimes = { firstOpenAt: 0, ...(fields.affiliateCode && { codeEnteredAt: 0 }) };
    const times = path === 'install' ? installTimes : { identifiedAt: 0 };
    const wanted = { deviceId: `$device${device}`, acceptUnattributed: true, ...times, ...fields };
    const full = JSON.parse(
      JSON.stringify(resolve(wanted, context), (_, value) => (value === null ? undefined : value)),
    );
    const text = JSON.stringify({ path: received[index].path, ...body });
    assert(
      received[index].path === path && isDeepStrictEqual(body, full),
      `request ${index + 1}: expected ${path} ${JSON.stringify(full)}, got ${text}`,
    );
    assert(/^[a-z-]+\/\d+\.\d+\.\d+$/.test(sdk), `request ${index + 1}: its sdk is ${sdk}`);
    assert(received[index].authorization === `Bearer ${apiKey}`, `request ${index + 1}: wrong key`);
  }
}

/** Plays one scenario. Throws an error that names the step that went wrong. */
export async function play(scenario, { server, driver }) {
  const host = scenario.options?.apiBaseUrl ?? server.url;
  const { apiKey = 'pk_live_test' } = scenario.options ?? {};
  // What a debug state must not have.
  const secrets = scenario.steps
    .flatMap(({ identify }) => identify ?? [])
    .concat(
      scenario.steps.flatMap(({ applyCode }) => applyCode?.trim() || []),
      'aff_1',
      token(1),
    );
  const context = { host, apiKey, secrets, deviceId: driver.deviceId ?? deviceId };
  const outcomes = new Map();
  server.load(resolve(scenario.script ?? [], context));
  const { store = null } = scenario;
  await driver.begin({
    host,
    options: scenario.options ?? {},
    store:
      typeof store === 'object' && store !== null
        ? JSON.stringify(resolve(store, context))
        : resolve(store, context),
    storage: scenario.storage ?? 'ok',
  });
  const settle = () => driver.settled(() => server.state().held);

  const call = async (name, step) => {
    const arguments_ = [step[name]].flat().map((value) => resolve(value, context));
    const promise = driver.call(
      name,
      ...(step.signature ? [arguments_[0], { signature: step.signature }] : arguments_),
    );
    if (step.as) outcomes.set(step.as, promise);
    else {
      const result = await promise;
      assert(!('result' in step) || result === step.result, `expected ${step.result}, got ${result}`);
    }
    await settle();
  };

  const run = async (step) => {
    const [name] = Object.keys(step);
    const value = step[name];
    assert(STEPS.has(name), 'no such step');
    switch (name) {
      case 'start': {
        const result = await driver.start(resolve(value, context));
        const { result: expected = true } = step;
        assert(expected === 'any' || result === expected, `expected ${expected}, got ${result}`);
        return settle();
      }
      case 'affiliate': {
        const result = await driver.call('attributedAffiliateId');
        return assert(result === value, `expected ${value}, got ${result}`);
      }
      case 'advance':
        await driver.advance(value);
        return settle();
      case 'clock':
        return driver.clock(value);
      case 'restart':
        return driver.restart(typeof value === 'object' ? value : undefined);
      case 'storage':
        return driver.storage(value);
      case 'offline':
        return server.setOffline(true);
      case 'online':
        server.setOffline(false);
        if (value === 'silently') return;
        await driver.event('online');
        return settle();
      case 'foreground':
        await driver.event('foreground');
        return settle();
      case 'release':
        server.release();
        return settle();
      case 'sent': {
        const { length } = server.state().requests;
        return assert(length === value, `expected ${value} requests until here, got ${length}`);
      }
      case 'outcome': {
        const result = await outcomes.get(value);
        return assert(result === step.result, `expected ${step.result}, got ${result}`);
      }
      case 'warnings': {
        const count = await driver.warnings();
        return assert(count === value, `expected ${value} log lines, got ${count}`);
      }
      case 'state': {
        const text = await driver.stored();
        const matches =
          typeof value === 'string'
            ? text === value
            : value === null
              ? text === null
              : contains(JSON.parse(text), resolve(value, context));
        return assert(matches, `expected ${JSON.stringify(value)}, stored is ${text}`);
      }
      case 'debug': {
        const state = await driver.call('debugState');
        const text = JSON.stringify(state);
        const wanted = resolve(value, context);
        assert(
          value === null ? state === null : contains(state, wanted),
          `expected ${JSON.stringify(wanted)}, got ${text}`,
        );
        const secret = context.secrets.find((word) => text.includes(word));
        return assert(secret === undefined, `the debug state has ${secret}: ${text}`);
      }
      default:
        return call(name, step);
    }
  };

  try {
    for (const [index, step] of scenario.steps.entries()) {
      try {
        await run(step);
      } catch (error) {
        throw new Error(`step ${index + 1} ${JSON.stringify(step)}: ${error.message}`);
      }
    }
    const { requests, unused, unexpected } = server.state();
    assert(unexpected.length === 0, `the script has no answer for ${JSON.stringify(unexpected)}`);
    if (scenario.requests) expectRequests(requests, scenario.requests, context);
    assert(unused === 0, `${unused} answers of the script were not used`);
  } finally {
    await driver.end?.();
  }
}

/** Whether a runtime with these abilities can play the scenario. */
export const isPlayable = ({ needs = [] }, abilities) => needs.every((need) => abilities.includes(need));
