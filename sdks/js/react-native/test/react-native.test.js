// What only React Native shows: links, the app's state, AsyncStorage, and the network as its own JavaScript sees it.
import { createDevice } from './native.js';

const { createServer } = require('node:http');
const { isDeepStrictEqual } = require('node:util');

const { START, startServer, token } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');
// The machine of a test may be slow.
jest.setTimeout(60_000);

let server;
let device;
let options;
beforeAll(async () => {
  server = await startServer();
});
beforeEach(() => {
  device = createDevice();
  options = { apiKey: 'pk_live_test', apiBaseUrl: server.url, deferredMatch: false };
});
afterEach(() => device.kill());
afterAll(() => server.close());

const sent = () => server.state().requests.map(({ path, body }) => [path, body]);
const until = async (condition) => {
  for (let tries = 0; !(await condition()); tries += 1) {
    if (tries === 500) throw new Error(`not within 10 s: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const start = async (extra = {}) => {
  const sdk = device.launch();
  expect(await sdk.start({ ...options, ...extra })).toBe(true);
  return sdk;
};

test('the link that opened the app is sent once, also if the app reports it again', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  device.initialUrl = `shop://open?claim_token=${token(1)}&via=spring`;
  const sdk = await start();
  device.openLink(device.initialUrl);
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
  await start();
  expect(sent()).toMatchObject([['install', { claimToken: token(1), affiliateCode: 'spring' }]]);
});

test('a link that comes while the app is open is sent', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const sdk = await start();
  device.openLink('https://shop.test/open?via=spring');
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
  expect(sent()).toMatchObject([['install', { affiliateCode: 'spring' }]]);
});

test('a link that comes while the state is read goes before a user of that moment', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const sdk = device.launch();
  void sdk.start(options);
  const identified = sdk.identify('user-1');
  device.openLink('https://shop.test/open?via=spring');
  expect(await identified).toBe(true);
  expect(sent().map(([path]) => path)).toEqual(['install', 'identify']);
});

test('start does not wait longer than a second for the link, and a late link is sent', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  let answer;
  device.initialUrl = new Promise((resolve) => {
    answer = resolve;
  });
  const sdk = await start();
  answer('https://shop.test/open?via=spring');
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
});

test('a return to the foreground sends what could not be sent', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const sdk = await start();
  server.setOffline(true);
  expect(await sdk.applyCode('SPRING')).toBe(false);
  server.setOffline(false);
  device.setAppState('background');
  expect(sent()).toEqual([]);
  const { now } = Date;
  // It waits five seconds after a failure.
  Date.now = () => now() + 5000;
  device.setAppState('active');
  Date.now = now;
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
});

const listening = [];
afterEach(() => {
  for (const http of listening.splice(0)) {
    http.close();
    http.closeAllConnections();
  }
});
/** Starts a server that records what it receives and answers with `respond`. */
const listen = async (respond) => {
  const received = [];
  const http = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    received.push(`${request.method} ${request.url} ${body}`);
    respond(request, response);
  });
  await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
  listening.push(http);
  return { url: `http://127.0.0.1:${http.address().port}`, received };
};

for (const status of [301, 302, 303, 307, 308]) {
  for (const path of ['', '/moved']) {
    test(`a ${status} to another host${path && ' and path'} gets no body there, and is no answer`, async () => {
      const other = await listen((_, response) =>
        response.end('{"attributionId":"att_1","affiliateId":"aff_1"}'),
      );
      const moved = await listen((request, response) =>
        response.writeHead(status, { location: `${other.url}${path}${request.url}` }).end(),
      );
      const sdk = await start({ apiBaseUrl: moved.url });
      expect(await sdk.identify('user-1')).toBe(false);
      expect(moved.received).not.toEqual([]);
      expect([...moved.received, ...other.received].filter((line) => line.includes('user-1'))).toEqual([]);
      expect(await sdk.attributedAffiliateId()).toBe(null);
      // It would try again and again.
      await sdk.setEnabled(false);
    });
  }
}

test('an answer that a redirect of the body alone led to is no answer', async () => {
  const other = await listen((_, response) => response.end('{"attributionId":"att_1"}'));
  const moved = await listen((request, response) => {
    if (request.method === 'OPTIONS') response.writeHead(405).end();
    else response.writeHead(307, { location: other.url + request.url }).end();
  });
  const sdk = await start({ apiBaseUrl: moved.url });
  expect(await sdk.identify('user-1')).toBe(false);
  await sdk.setEnabled(false);
});

test.each(['https://Tributary.TEST', 'https://tributary.test:443/'])(
  'the system may report %s in its normal form',
  async (apiBaseUrl) => {
    server.load([{ path: 'identify', answer: 'bound' }]);
    // Clients of earlier tests may still try again.
    device.route = (url) => (/tributary\.test/i.test(url) ? server.url + url.slice(-13) : url);
    const sdk = await start({ apiBaseUrl });
    expect(await sdk.identify('user-1')).toBe(true);
  },
);

describe('the install referrer of Google Play', () => {
  const { Platform } = require('react-native');
  const isAndroid = Platform.OS === 'android';
  let asked;
  let referrer;
  const started = [];
  const withReferrer = async (extra) => {
    const sdk = await start({
      installReferrer: async () => {
        asked += 1;
        return await referrer;
      },
      ...extra,
    });
    started.push(sdk);
    return sdk;
  };
  // A client would try again and again what its test has no answer for. The storage of one before a launch does not answer any more.
  afterEach(() => {
    for (const sdk of started.splice(0)) void sdk.setEnabled(false);
  });
  const referrals = () => sent().filter(([path]) => path === 'install');
  beforeEach(() => {
    asked = 0;
    referrer = `utm_source=x&claim_token=${token(1)}&via=spring`;
    server.load([
      { path: 'install', answer: 'won' },
      { path: 'identify', answer: 'bound' },
    ]);
  });

  test('is sent before a user on Android, and asked for once per installation', async () => {
    const sdk = await withReferrer();
    await sdk.identify('user-1');
    const expected = [
      ['install', { claimToken: token(1), affiliateCode: 'spring' }],
      ['identify', { customerUserId: 'user-1' }],
    ];
    expect(sent()).toMatchObject(isAndroid ? expected : expected.slice(1));
    await withReferrer();
    expect(asked).toBe(isAndroid ? 1 : 0);
  });

  test('is asked for again if it failed', async () => {
    referrer = Promise.reject(new Error('Play is busy'));
    referrer.catch(() => {});
    await withReferrer();
    referrer = 'via=spring';
    const sdk = await withReferrer();
    if (isAndroid) await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
    expect(asked).toBe(isAndroid ? 2 : 0);
  });

  test('is asked for again if it could not be stored', async () => {
    device.storage = 'unwritable';
    // It works again as soon as a write has failed.
    const logger = (line) => {
      if (/storage failed/.test(line)) device.storage = 'ok';
    };
    await withReferrer({ debug: true, logger });
    if (isAndroid) await until(() => device.storage === 'ok');
    device.storage = 'ok';
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    await withReferrer();
    expect(asked).toBe(isAndroid ? 2 : 0);
  });

  test('is not asked for after a refusal, and stays in memory while the consent is undecided', async () => {
    let sdk = device.launch();
    await sdk.setEnabled(false);
    await sdk.start({ ...options, installReferrer: async () => ((asked += 1), referrer) });
    await until(() => device.values.size > 0);
    expect(referrals()).toEqual([]);
    expect([...device.values.keys()]).toEqual(['tributary']);
    await sdk.setEnabled(false);
    expect(asked).toBe(isAndroid ? 1 : 0);
    await withReferrer();
    expect(asked).toBe(isAndroid ? 1 : 0);
  });

  test('that comes after a reset is not used, neither then nor later', async () => {
    let answer;
    referrer = new Promise((resolve) => {
      answer = resolve;
    });
    const sdk = await withReferrer();
    await sdk.reset();
    answer('via=spring');
    await sdk.identify('user-1');
    await withReferrer();
    expect(referrals()).toEqual([]);
    expect(asked).toBe(isAndroid ? 1 : 0);
  });
});

test('reset resolves when the storage is empty', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const sdk = await start();
  expect(await sdk.applyCode('SPRING')).toBe(true);
  expect(device.values.size).toBe(1);
  await sdk.reset();
  expect(device.values.size).toBe(0);
  expect(await sdk.attributedAffiliateId()).toBe(null);
});

test('setEnabled resolves when the opt-out is stored', async () => {
  const sdk = await start();
  await sdk.setEnabled(false);
  expect(JSON.parse(device.values.get('tributary'))).toMatchObject({ enabled: false, deviceId: '' });
});

test('the consent recipe of the README keeps the link until the consent', async () => {
  const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
  const readme = readFileSync(`${__dirname}/../README.md`, 'utf8');
  const [, snippet] = /### Consent[\s\S]*?```ts\n([\s\S]*?)```/.exec(readme);
  const given = "{ apiKey: 'pk_live_…', apiBaseUrl: 'https://tributary.example.com' }";
  expect(snippet).toContain(given);
  mkdirSync(`${__dirname}/../dist/recipe`, { recursive: true });
  writeFileSync(`${__dirname}/../dist/recipe/consent.ts`, snippet.replace(given, 'global.consentOptions'));
  server.load([{ path: 'install', answer: 'won' }]);
  global.consentOptions = options;
  device.initialUrl = 'https://shop.test/open?via=spring';
  let sdk;
  const recipe = device.launch(() => {
    sdk = require('@tributary/react-native');
    return require('../dist/recipe/consent.ts');
  });
  await recipe.launchWithConsent(false);
  expect(sent()).toEqual([]);
  await recipe.onConsentChosen(true);
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
  expect(sent()).toMatchObject([['install', { affiliateCode: 'spring' }]]);
  await recipe.onConsentChosen(false);
  expect(await sdk.attributedAffiliateId()).toBe(null);
});

test('an own storage replaces AsyncStorage', async () => {
  const values = new Map();
  await start({
    storage: {
      get: (key) => values.get(key) ?? null,
      set: (key, value) => void values.set(key, value),
      remove: (key) => void values.delete(key),
    },
  });
  await until(() => values.size === 1);
  expect(device.values.size).toBe(0);
});

describe('without crypto.getRandomValues', () => {
  const { crypto } = global;
  const { random } = Math;
  const { now } = Date;
  const { performance } = global;
  beforeEach(() => {
    Object.defineProperty(global, 'crypto', { configurable: true, value: undefined });
    // Two devices whose Math.random began with the same seed.
    Math.random = () => 0.5;
  });
  afterEach(() => {
    Object.defineProperty(global, 'crypto', { configurable: true, value: crypto });
    Object.defineProperty(global, 'performance', { configurable: true, value: performance });
    Math.random = random;
    Date.now = now;
  });

  const newId = async (time, sinceBoot) => {
    Date.now = () => time;
    Object.defineProperty(global, 'performance', { configurable: true, value: { now: () => sinceBoot } });
    device = createDevice();
    await start();
    await until(() => device.values.size === 1);
    return JSON.parse(device.values.get('tributary')).deviceId;
  };

  test('the device id is a UUID v4 that differs for each millisecond and each time since the boot', async () => {
    const ids = [await newId(START, 5000), await newId(START + 1, 5000), await newId(START, 5000.001)];
    for (const id of ids)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(ids).size).toBe(3);
    expect(isDeepStrictEqual(ids[0], await newId(START, 5000))).toBe(true);
  });
});
