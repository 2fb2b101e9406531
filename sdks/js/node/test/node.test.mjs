import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createFakeClock } from '../../../conformance/fake-clock.mjs';
import { startServer } from '../../../conformance/server.mjs';
import { createTributary, fileStorage, referralFrom } from '../dist/index.js';

const TOKEN = '11111111-1111-4111-8111-111111111111';
let server;
let folder;
let options;
before(async () => {
  server = await startServer();
  folder = await mkdtemp(join(tmpdir(), 'tributary-node-'));
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  options = { apiKey: 'pk_live_test', apiBaseUrl: server.url, logger: () => {} };
});
const sent = () => server.state().requests.map(({ path, body }) => ({ path, ...body }));

test('trackSignup reports the referral of the address and the user, on a device of its own', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const url = `https://shop.test/?claim_token=${TOKEN}&via=spring`;
  assert.deepEqual(await createTributary(options).trackSignup({ userId: 'u', url }), {
    affiliateId: 'aff_1',
  });
  const [install, identify] = sent();
  assert.equal(install.deviceId, 'srv_u');
  assert.equal(install.claimToken, TOKEN);
  assert.equal(install.affiliateCode, 'spring');
  assert.equal(identify.deviceId, 'srv_u');
  assert.equal(identify.customerUserId, 'u');
});

test('trackSignup with a signature reports a device that nobody can name before', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await createTributary(options).trackSignup({ userId: 'u', code: 'spring', signature: 'f00d' });
  const id = `srv_${createHash('sha256').update('f00d').digest('hex')}`;
  assert.deepEqual(
    sent().map(({ deviceId }) => deviceId),
    [id, id],
  );
});

test('an entered code takes the place of the code in the address', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await createTributary(options).trackSignup({ userId: 'u', url: 'https://x.test/?via=one', code: 'TWO' });
  assert.equal(sent()[0].affiliateCode, 'TWO');
});

test('trackSignup reports the device of the browser, if it is given', async () => {
  server.load([
    { path: 'install', answer: 'existing' },
    { path: 'identify', answer: 'bound' },
  ]);
  const signup = { userId: 'u', code: 'SPRING', deviceId: 'browser-1' };
  assert.deepEqual(await createTributary(options).trackSignup(signup), { affiliateId: 'aff_1' });
  assert.deepEqual(
    sent().map(({ deviceId }) => deviceId),
    ['browser-1', 'browser-1'],
  );
});

test('a logger and an onAttribution that reject do not end the process', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const rejected = [];
  const listen = (reason) => rejected.push(reason);
  process.on('unhandledRejection', listen);
  const fail = () => Promise.reject(new Error('The app is broken.'));
  const tributary = createTributary({ ...options, logger: fail, onAttribution: fail });
  assert.equal(await tributary.device('d').applyCode('SPRING'), true);
  assert.equal(await tributary.device('d').identify(''), false);
  await setTimeout(5);
  process.off('unhandledRejection', listen);
  assert.deepEqual(rejected, []);
});

test('trackSignup without a referral reports the user, who may be known from a device', async () => {
  server.load([
    { path: 'identify', answer: 'bound' },
    { path: 'identify', answer: 'unbound' },
  ]);
  const tributary = createTributary(options);
  assert.deepEqual(await tributary.trackSignup({ userId: 'u' }), { affiliateId: 'aff_1' });
  assert.equal(await tributary.trackSignup({ userId: 'v' }), null);
});

test('a code that a user enters after a sign-up without one is answered with its affiliate', async () => {
  server.load([
    { path: 'identify', answer: 'unbound' },
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const tributary = createTributary(options);
  assert.equal(await tributary.trackSignup({ userId: 'u' }), null);
  assert.deepEqual(await tributary.trackSignup({ userId: 'u', code: 'SPRING' }), { affiliateId: 'aff_1' });
  assert.equal(sent().length, 3);
});

test('a long user id has a device id that the service accepts', async () => {
  server.load([{ path: 'identify', answer: 'bound', times: 2 }]);
  const tributary = createTributary(options);
  await tributary.trackSignup({ userId: `${'u'.repeat(500)}1` });
  await tributary.trackSignup({ userId: `${'u'.repeat(500)}2` });
  const [one, two] = sent();
  assert.ok(one.deviceId.length <= 200);
  assert.notEqual(one.deviceId, two.deviceId);
});

test('trackSignup without a user id sends nothing', async () => {
  server.load([]);
  const tributary = createTributary(options);
  assert.equal(await tributary.trackSignup({ userId: '', code: 'SPRING' }), null);
  assert.equal(await tributary.trackSignup({ code: 'SPRING' }), null);
  assert.deepEqual(sent(), []);
});

test('the key and the base address come from the environment', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  process.env.TRIBUTARY_SDK_KEY = 'pk_live_environment';
  process.env.TRIBUTARY_API_BASE_URL = `${server.url}/`;
  try {
    assert.equal(await createTributary().device('d').identify('u'), true);
  } finally {
    delete process.env.TRIBUTARY_SDK_KEY;
    delete process.env.TRIBUTARY_API_BASE_URL;
  }
  assert.equal(server.state().requests[0].authorization, 'Bearer pk_live_environment');
});

test('devices are independent of each other', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const tributary = createTributary(options);
  await tributary.device('a').applyCode('SPRING');
  assert.equal(await tributary.device('a').attributedAffiliateId(), 'aff_1');
  assert.equal(await tributary.device('b').attributedAffiliateId(), null);
});

test('flush is true when everything is delivered, and false when something is left or the time is over', async () => {
  server.load([
    { path: 'identify', answer: 'bound' },
    { path: 'identify', answer: 'unavailable' },
    { path: 'identify', fault: 'hang' },
  ]);
  const tributary = createTributary(options);
  void tributary.device('a').identify('u');
  assert.equal(await tributary.flush(5000), true);
  void tributary.device('b').identify('u');
  assert.equal(await tributary.flush(5000), false);
  void tributary.device('c').identify('u');
  assert.equal(await tributary.flush(50), false);
});

test('a process ends while something waits to be sent again', async () => {
  server.load([{ path: 'identify', answer: 'unavailable' }]);
  const sdk = fileURLToPath(new URL('../dist/index.js', import.meta.url));
  const program = `
    import { createTributary } from ${JSON.stringify(sdk)};
    const tributary = createTributary({ apiKey: 'k', apiBaseUrl: '${server.url}' });
    console.log(await tributary.device('d').identify('u'));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 5000,
  });
  assert.equal(stdout, 'false\n');
});

test('a file keeps what was not delivered for the next process', async () => {
  const path = join(folder, 'state.json');
  server.load([
    { path: 'identify', answer: 'unavailable' },
    { path: 'identify', answer: 'bound' },
  ]);
  const first = createTributary({ ...options, storage: fileStorage(path) });
  assert.equal(await first.device('d').identify('u'), false);
  await first.flush(1000);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const next = createTributary({ ...options, storage: fileStorage(path) });
  await next.device('d').attributedAffiliateId();
  await next.flush(5000);
  assert.equal(await next.device('d').attributedAffiliateId(), 'aff_1');
  await next.device('d').reset();
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), {});
});

test('a damaged file is kept beside the new one', async () => {
  const path = join(folder, 'damaged.json');
  await writeFile(path, '{"tributary.d": "');
  await fileStorage(path).set('key', 'value');
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { key: 'value' });
  assert.equal(await readFile(`${path}.damaged`, 'utf8'), '{"tributary.d": "');
});

test('a file that cannot be read is not overwritten, and the calls work from memory', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const path = join(folder, 'folder.json');
  await writeFile(`${path}`, '');
  const unreadable = join(path, 'state.json');
  const tributary = createTributary({ ...options, storage: fileStorage(unreadable) });
  assert.equal(await tributary.device('d').applyCode('SPRING'), true);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('folder')),
    ['folder.json'],
  );
});

test('many writes of one moment leave the last values', async () => {
  const path = join(folder, 'many.json');
  const storage = fileStorage(path);
  await Promise.all(
    Array.from({ length: 200 }, (_, index) => storage.set(`key${index % 10}`, String(index))),
  );
  const stored = JSON.parse(await readFile(path, 'utf8'));
  assert.equal(Object.keys(stored).length, 10);
  assert.equal(stored.key9, '199');
});

test('referralFrom reads a token and a code', () => {
  assert.deepEqual(Object.keys(referralFrom('https://x.test/?via=a')), ['code']);
  assert.deepEqual(referralFrom(`https://x.test/?via=a+b&claim_token=${TOKEN.toUpperCase()}`), {
    claimToken: TOKEN,
    code: 'a b',
  });
  assert.equal(referralFrom('https://x.test/?code=a'), undefined);
});

test('a callback that throws something without a text ends no process and stops no later call', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const onAttribution = () => {
    throw Object.create(null);
  };
  const device = createTributary({ ...options, onAttribution }).device('d');
  assert.equal(await device.applyCode('SPRING'), true);
  assert.equal(await device.identify('u'), true);
});

test('flush ends in time while a storage does not answer', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  const get = (key) => (key.endsWith('hangs') ? new Promise(() => {}) : null);
  const tributary = createTributary({ ...options, storage: { get, set: () => {}, remove: () => {} } });
  void tributary.device('hangs').identify('u');
  assert.equal(await tributary.device('answers').identify('v'), true);
  const ended = await Promise.race([tributary.flush(50), setTimeout(2000, 'still waiting', { ref: false })]);
  assert.equal(ended, false);
});

test('an empty signature is none, so that a repeated call is not sent again', async () => {
  server.load([{ path: 'identify', answer: 'unbound' }]);
  const device = createTributary(options).device('d');
  for (const signature of ['', null, undefined, 7])
    assert.equal(await device.identify('u', { signature }), false);
  assert.equal(server.state().requests.length, 1);
});

test('options that are null, and a base address that is a URL, are taken', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  const apiBaseUrl = new URL(server.url);
  assert.equal(
    await createTributary({ ...options, apiBaseUrl })
      .device('d')
      .identify('u', null),
    true,
  );
  const warn = console.warn;
  console.warn = () => {};
  try {
    assert.equal(await createTributary(null).device('d').identify('u'), false);
  } finally {
    console.warn = warn;
  }
});

/** A runtime with a clock that the test moves, and timers that never run. */
function createPlatform() {
  let movedMs = 0;
  return {
    sdk: 'node/0.1.0',
    fetch: (url, init) => fetch(url, init),
    now: () => Date.now() + movedMs,
    random: () => 0,
    newId: () => 'unused',
    after: () => () => {},
    move: (ms) => {
      movedMs += ms;
    },
  };
}

test('a Retry-After of a service that is down holds for every device of the instance', async () => {
  server.load([
    { path: 'identify', answer: { name: 'unavailable', headers: { 'retry-after': '60' } } },
    { path: 'identify', answer: 'bound' },
  ]);
  const platform = createPlatform();
  const tributary = createTributary(options, platform);
  assert.equal(await tributary.device('a').identify('u'), false);
  assert.equal(await tributary.device('b').identify('v'), false);
  assert.equal(sent().length, 1);
  platform.move(60_000);
  assert.equal(await tributary.device('c').identify('w'), true);
});

test('a clock that is set back after a Retry-After does not prolong it for the devices of the instance', async () => {
  server.load([
    { path: 'identify', answer: { name: 'unavailable', headers: { 'retry-after': '60' } } },
    { path: 'identify', answer: 'bound' },
  ]);
  const platform = createPlatform();
  const tributary = createTributary(options, platform);
  assert.equal(await tributary.device('a').identify('u'), false);
  platform.move(-7_200_000);
  assert.equal(await tributary.device('b').identify('v'), true);
});

test('a 429 of one device delays no other device of the instance', async () => {
  server.load([
    { path: 'identify', answer: { name: 'rate_limited', headers: { 'retry-after': '60' } } },
    { path: 'identify', answer: 'bound', times: 4 },
  ]);
  const platform = createPlatform();
  const tributary = createTributary(options, platform);
  assert.equal(await tributary.device('a').identify('u'), false);
  assert.equal(await tributary.device('b').identify('v'), true);
  assert.equal(await tributary.device('a').identify('w'), false);
  assert.equal(sent().length, 2);
  platform.move(60_000);
  assert.equal(await tributary.device('a').identify('x'), true);
});

test('a wrong key stops every device of the instance for an hour, and is logged once', async () => {
  server.load([
    { path: 'identify', answer: 'unauthorized' },
    { path: 'identify', answer: 'bound' },
  ]);
  const lines = [];
  const platform = createPlatform();
  const tributary = createTributary({ ...options, logger: (line) => lines.push(line) }, platform);
  assert.equal(await tributary.device('a').identify('u'), false);
  assert.equal(await tributary.device('b').identify('v'), false);
  assert.equal(sent().length, 1);
  assert.equal(lines.length, 1, lines.join('\n'));
  platform.move(3_600_000);
  assert.equal(await tributary.device('c').identify('w'), true);
});

test('a clock that is set back after a wrong key does not prolong the hour', async () => {
  server.load([
    { path: 'identify', answer: 'unauthorized' },
    { path: 'identify', answer: 'bound' },
  ]);
  const platform = createPlatform();
  const tributary = createTributary(options, platform);
  assert.equal(await tributary.device('a').identify('u'), false);
  platform.move(-86_400_000);
  assert.equal(await tributary.device('b').identify('v'), true);
});

/** A runtime whose clock and timers the test moves. */
function createTimedPlatform() {
  const clock = createFakeClock(Date.now());
  return { ...createPlatform(), now: clock.now, after: clock.after, clock };
}
const settle = async () => {
  for (let turn = 0; turn < 5; turn += 1) await setTimeout(2);
};

test('a storage that never answers blocks a call for at most five seconds', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  const never = () => new Promise(() => {});
  const platform = createTimedPlatform();
  const storage = { get: never, set: never, remove: never };
  const tributary = createTributary({ ...options, storage }, platform);
  const signedUp = tributary.trackSignup({ userId: 'u' });
  await platform.clock.advance(5_000, settle);
  await platform.clock.advance(5_000, settle);
  assert.deepEqual(await signedUp, { affiliateId: 'aff_1' });
});

test('a file that cannot be written is named in the log once, and the calls work', async () => {
  server.load([{ path: 'identify', answer: 'bound', times: 2 }]);
  const lines = [];
  const storage = fileStorage(join(folder, 'no such folder', 'state.json'));
  const tributary = createTributary({ ...options, storage, logger: (line) => lines.push(line) });
  await tributary.trackSignup({ userId: 'u' });
  await tributary.trackSignup({ userId: 'v' });
  assert.equal(lines.length, 1, lines.join('\n'));
  assert.match(lines[0], /cannot be written.*ENOENT/);
});

test('sign-ups during an outage of 90 seconds are delivered within ten minutes, without another call', async () => {
  server.load([]);
  server.setOffline(true);
  const platform = createTimedPlatform();
  const tributary = createTributary(options, platform);
  for (const user of ['a', 'b', 'c']) assert.equal(await tributary.trackSignup({ userId: user }), null);
  await platform.clock.advance(90_000, settle);
  server.setOffline(false);
  server.load([{ path: 'identify', answer: 'bound', times: 3 }]);
  await platform.clock.advance(600_000, settle);
  assert.deepEqual(
    sent()
      .map(({ customerUserId }) => customerUserId)
      .toSorted(),
    ['a', 'b', 'c'],
  );
});

test('after the answer that the key is wrong, what waits is sent without another call as soon as the key is right', async () => {
  server.load([
    { path: 'identify', answer: 'unauthorized' },
    { path: 'identify', answer: 'bound', times: 2 },
  ]);
  const platform = createTimedPlatform();
  const tributary = createTributary(options, platform);
  await tributary.trackSignup({ userId: 'a' });
  await tributary.trackSignup({ userId: 'b' });
  await platform.clock.advance(3_500_000, settle);
  assert.equal(sent().length, 1);
  await platform.clock.advance(200_000, settle);
  assert.equal(sent().length, 3);
});

test('what an earlier process left in a file is delivered after a start, without a call for its device', async () => {
  const path = join(folder, 'left.json');
  server.load([]);
  server.setOffline(true);
  const given = { ...options, storage: fileStorage(path) };
  const tributary = createTributary(given);
  assert.equal(await tributary.trackSignup({ userId: 'left', code: 'SPRING' }), null);
  assert.equal(await tributary.flush(5000), false);
  server.setOffline(false);
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const next = createTributary({ ...options, storage: fileStorage(path) });
  assert.equal(await next.flush(5000), true);
  assert.deepEqual(
    sent().map(({ deviceId, customerUserId }) => [deviceId, customerUserId]),
    [
      ['srv_left', undefined],
      ['srv_left', 'left'],
    ],
  );
});

test('an app delivers what it left in a storage, and nothing of another app that uses the same storage', async () => {
  const path = join(folder, 'apps.json');
  server.load([]);
  server.setOffline(true);
  const games = { ...options, apiKey: 'pk_live_games', app: 'games' };
  for (const given of [options, games]) {
    const tributary = createTributary({ ...given, storage: fileStorage(path) });
    await tributary.device('visitor').identify(`user of ${given.apiKey}`);
    await tributary.flush(5000);
  }
  server.setOffline(false);
  server.load([{ path: 'identify', answer: 'bound', times: 2 }]);
  const deliver = async (given) => {
    assert.equal(await createTributary({ ...given, storage: fileStorage(path) }).flush(5000), true);
    const { authorization, body } = server.state().requests.at(-1);
    assert.equal(authorization, `Bearer ${given.apiKey}`);
    assert.equal(body.customerUserId, `user of ${given.apiKey}`);
  };
  await deliver(options);
  assert.equal(sent().length, 1);
  await deliver(games);
  assert.equal(sent().length, 2);
});

test('the debug state of a device is null without a key', async () => {
  const tributary = createTributary({ ...options, apiKey: '' });
  assert.equal(await tributary.device('visitor').debugState(), null);
});

test('a storage that fails while it is listed logs one line, and the calls work', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  const lines = [];
  const storage = {
    keys: () => Promise.reject(new Error('no')),
    get: () => null,
    set: () => {},
    remove: () => {},
  };
  const tributary = createTributary({ ...options, storage, logger: (line) => lines.push(line) });
  assert.deepEqual(await tributary.trackSignup({ userId: 'u' }), { affiliateId: 'aff_1' });
  assert.equal(lines.length, 1);
});

test('flush sends what waits for its next try', async () => {
  server.load([
    { path: 'identify', answer: 'unavailable' },
    { path: 'identify', answer: 'bound' },
  ]);
  const tributary = createTributary(options, createPlatform());
  assert.equal(await tributary.trackSignup({ userId: 'u' }), null);
  assert.equal(await tributary.flush(5000), true);
  assert.equal(sent().length, 2);
});

/** A runtime whose service is down until `platform.isUp`. Counts the requests and the timers that wait. */
function createCountingPlatform() {
  const count = { requests: 0, underWay: 0, most: 0, timers: 0 };
  const platform = {
    ...createPlatform(),
    isUp: false,
    fetch: async () => {
      count.requests += 1;
      count.underWay += 1;
      count.most = Math.max(count.most, count.underWay);
      await null;
      count.underWay -= 1;
      if (!platform.isUp) throw new Error('down');
      return Response.json({ attributionId: 'att_1', affiliateId: 'aff_1' });
    },
    after: () => {
      let isWaiting = true;
      count.timers += 1;
      return () => {
        if (isWaiting) count.timers -= 1;
        isWaiting = false;
      };
    },
  };
  return { platform, count };
}

test('memory keeps as many waiting devices again as devices, and a longer unused one is delivered from the storage', async () => {
  const { platform, count } = createCountingPlatform();
  const lines = [];
  const values = new Map();
  const storage = {
    get: (key) => values.get(key) ?? null,
    set: (key, value) => void values.set(key, value),
    remove: (key) => void values.delete(key),
  };
  const logger = (line) => lines.push(line);
  const tributary = createTributary({ ...options, storage, logger }, platform, 5);
  for (let index = 0; index < 20; index += 1)
    assert.equal(await tributary.device(`device-${index}`).identify('u'), false);
  assert.equal(count.timers, 10);
  assert.equal(lines.length, 1, lines.join('\n'));
  platform.isUp = true;
  assert.equal(await tributary.device('device-0').identify('u'), true);
});

test('an unused device for which something waits stays one client, and flush delivers it', async () => {
  const { platform, count } = createCountingPlatform();
  const tributary = createTributary(options, platform, 5);
  assert.equal(await tributary.device('first').identify('u'), false);
  for (let index = 0; index < 20; index += 1)
    assert.equal(await tributary.device(`device-${index}`).attributedAffiliateId(), null);
  platform.isUp = true;
  assert.equal(await tributary.flush(5000), true);
  assert.equal(count.requests, 2);
  assert.equal(await tributary.device('first').attributedAffiliateId(), 'aff_1');
});

test('flush sends for ten devices at a time, and no more after ten that failed', async () => {
  const { platform, count } = createCountingPlatform();
  const tributary = createTributary(options, platform);
  for (let index = 0; index < 100; index += 1) await tributary.device(`device-${index}`).identify('u');
  Object.assign(count, { requests: 0, most: 0 });
  assert.equal(await tributary.flush(5000), false);
  assert.equal(count.most, 10);
  assert.ok(count.requests >= 10 && count.requests < 20, `${count.requests} requests`);
  platform.isUp = true;
  count.requests = 0;
  assert.equal(await tributary.flush(5000), true);
  assert.equal(count.requests, 100);
});

test('an empty or malformed code or claim token does not hide that of the address', async () => {
  const url = `https://shop.test/?claim_token=${TOKEN}&via=spring`;
  for (const [index, claimToken] of ['', 'not a token'].entries()) {
    server.load([
      { path: 'install', answer: 'won' },
      { path: 'identify', answer: 'bound' },
    ]);
    const calledAt = Date.now();
    await createTributary(options).trackSignup({ userId: `u${index}`, url, claimToken, code: ' ' });
    // A client of an earlier test may still send.
    const install = sent().find(({ deviceId }) => deviceId === `srv_u${index}`);
    assert.equal(install.claimToken, TOKEN);
    assert.equal(install.affiliateCode, 'spring');
    assert.ok(install.codeEnteredAt >= calledAt && install.codeEnteredAt <= Date.now());
  }
});

test('a file keeps the devices that changed last, and drops the others', async () => {
  const path = join(folder, 'few.json');
  const storage = fileStorage(path, { maxDevices: 2 });
  await storage.set('a', '1');
  await storage.set('b', '2');
  await storage.set('a', '3');
  await storage.set('c', '4');
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { a: '3', c: '4' });
  assert.equal(await storage.get('b'), null);
  const next = fileStorage(path, { maxDevices: 1 });
  assert.equal(await next.get('a'), '3');
  await next.set('d', '5');
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { d: '5' });
});

test('a file keeps a refusal, which is the last change of a device, before other devices', async () => {
  const path = join(folder, 'refusals.json');
  const storage = fileStorage(path, { maxDevices: 2 });
  const refused = '{"enabled":false}';
  for (const [key, text] of [
    ['r', refused],
    ['a', '1'],
    ['b', '2'],
    ['s', refused],
    ['c', '3'],
  ])
    await storage.set(key, text);
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { s: refused, c: '3' });
});

test('a file keeps 10,000 devices unless the option says otherwise', async () => {
  const path = join(folder, 'many.json');
  const storage = fileStorage(path);
  await Promise.all(Array.from({ length: 10_001 }, (_, index) => storage.set(`device-${index}`, 'x')));
  const kept = Object.keys(JSON.parse(await readFile(path, 'utf8')));
  assert.equal(kept.length, 10_000);
  assert.equal(kept[0], 'device-1');
});

test('an address that has no text is no referral', async () => {
  server.load([]);
  const device = createTributary(options).device('d');
  assert.equal(await device.attribute(Object.create(null)), false);
  assert.equal(referralFrom(Object.create(null)), undefined);
  assert.equal(sent().length, 0);
});
