// What only React Native shows: links, the app's state, AsyncStorage, and the network as its own JavaScript sees it.
import { createDevice } from './native.js';

const { isDeepStrictEqual } = require('node:util');

const { START, startServer, token } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');

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
  device.setAppState('active');
  await until(async () => (await sdk.attributedAffiliateId()) === 'aff_1');
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
