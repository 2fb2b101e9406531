// The helper for billing SDKs, in the file that an app loads. Its types are compiled against those of the SDKs in
// react-native/test/billing.test.js.
import assert from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import { linkPurchases } from '../web/dist/billing.js';

let calls;
const record =
  (name) =>
  async (...given) =>
    void calls.push([name, ...given]);
const revenueCat = { logIn: record('logIn'), setAttributes: record('setAttributes') };
const adapty = { identify: record('adapty.identify'), updateProfile: record('updateProfile') };
const superwall = { identify: record('superwall.identify'), update: record('update') };
const all = { revenueCat, adapty, superwall };
beforeEach(() => {
  calls = [];
});

test('every billing SDK receives the user id, and then the code', async () => {
  const everyone = ['revenueCat', 'adapty', 'superwall'];
  assert.deepEqual(await linkPurchases('user-1', all, { code: 'SPRING' }), {
    userId: everyone,
    code: everyone,
  });
  const of = (sdk) => calls.filter(([name]) => sdk.includes(name));
  assert.deepEqual(of(['logIn', 'setAttributes']), [
    ['logIn', 'user-1'],
    ['setAttributes', { tributary_code: 'SPRING' }],
  ]);
  assert.deepEqual(of(['adapty.identify', 'updateProfile']), [
    ['adapty.identify', 'user-1'],
    ['updateProfile', { codableCustomAttributes: { tributary_code: 'SPRING' } }],
  ]);
  assert.deepEqual(of(['superwall.identify', 'update']), [
    ['superwall.identify', 'user-1'],
    ['update', { tributary_code: 'SPRING' }],
  ]);
});

test('the Web SDK of RevenueCat and the object API of Superwall receive them, too', async () => {
  const web = { identifyUser: record('identifyUser'), setAttributes: record('setAttributes') };
  const shared = { identify: record('identify'), setUserAttributes: record('setUserAttributes') };
  await linkPurchases('user-1', { revenueCat: web, superwall: shared }, { code: 'SPRING' });
  assert.deepEqual(calls.toSorted(), [
    ['identify', { userId: 'user-1' }],
    ['identifyUser', 'user-1'],
    ['setAttributes', { tributary_code: 'SPRING' }],
    ['setUserAttributes', { tributary_code: 'SPRING' }],
  ]);
});

test('the methods are called on their objects', async () => {
  class Purchases {
    #id;
    logIn(id) {
      this.#id = id;
    }
    setAttributes() {
      calls.push(this.#id);
    }
  }
  await linkPurchases('user-1', { revenueCat: new Purchases() }, { code: 'SPRING' });
  assert.deepEqual(calls, ['user-1']);
});

for (const [what, fail] of [
  ['rejects', () => Promise.reject(new Error('no network'))],
  [
    'throws',
    () => {
      throw new Error('not configured');
    },
  ],
])
  test(`a billing SDK that ${what} does not stop the others, and gets no code without a user`, async () => {
    const broken = { ...revenueCat, logIn: fail };
    assert.deepEqual(await linkPurchases('user-1', { ...all, revenueCat: broken }, { code: 'SPRING' }), {
      userId: ['adapty', 'superwall'],
      code: ['adapty', 'superwall'],
    });
    assert.ok(!calls.some(([name]) => name === 'setAttributes'));
  });

test('a code that one billing SDK refuses reaches the others, and the refusing one is not named', async () => {
  const refusing = { ...adapty, updateProfile: () => Promise.reject(new Error('refused')) };
  assert.deepEqual(await linkPurchases('user-1', { ...all, adapty: refusing }, { code: 'SPRING' }), {
    userId: ['revenueCat', 'adapty', 'superwall'],
    code: ['revenueCat', 'superwall'],
  });
});

test('the app waits at most ten seconds for a billing SDK that does not answer, which gets the code when it does', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let answer;
  const slow = { ...revenueCat, logIn: () => new Promise((resolve) => (answer = resolve)) };
  const linked = linkPurchases('user-1', { ...all, revenueCat: slow }, { code: 'SPRING' });
  for (let turns = 0; turns < 20; turns += 1) await null;
  mock.timers.tick(10_000);
  mock.timers.reset();
  const result = await linked;
  assert.deepEqual(result.userId, ['adapty', 'superwall']);
  calls = [];
  answer();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(calls, [['setAttributes', { tributary_code: 'SPRING' }]]);
  // What the app was given does not change any more.
  assert.deepEqual(result.userId, ['adapty', 'superwall']);
});

test('the code of an earlier user is not set for a later one', async () => {
  let answer;
  const slow = { ...revenueCat, logIn: () => new Promise((resolve) => (answer = resolve)) };
  const first = linkPurchases('user-1', { revenueCat: slow }, { code: 'SPRING' });
  await linkPurchases('user-2', { revenueCat });
  answer();
  assert.deepEqual(await first, { userId: ['revenueCat'], code: [] });
  assert.deepEqual(calls, [['logIn', 'user-2']]);
});

const ADDRESS = 'anna@example.com';
for (const code of [
  ADDRESS,
  'Anna Example',
  'a\u00A0b',
  ' SPRING',
  'a\nb',
  'a\0b',
  'x'.repeat(65),
  '',
  null,
  7,
  {},
])
  test(`${JSON.stringify(code)} is not passed on as a code`, async () => {
    const { userId, code: accepted } = await linkPurchases('user-1', all, { code });
    assert.deepEqual([userId.length, accepted], [3, []]);
    assert.equal(calls.length, 3);
  });

test('a code of 64 characters is passed on, except to Adapty, which takes 50', async () => {
  const of = async (length) => (await linkPurchases('user-1', all, { code: 'x'.repeat(length) })).code;
  assert.deepEqual(await of(50), ['revenueCat', 'adapty', 'superwall']);
  assert.deepEqual(await of(51), ['revenueCat', 'superwall']);
  assert.deepEqual(await of(64), ['revenueCat', 'superwall']);
});

for (const [what, given] of [
  ['an empty user id', ['', all]],
  ['a user id that is a number', [7, all]],
  ['a user id of 513 characters', ['x'.repeat(513), all]],
  ['no billing SDK', ['user-1', {}]],
  ['null instead of billing SDKs', ['user-1', null]],
  ['billing SDKs that are null', ['user-1', { revenueCat: null, adapty: undefined }]],
  ['a billing SDK that is a text', ['user-1', { revenueCat: 'Purchases' }]],
  ['no arguments', []],
])
  test(`${what} changes nothing and does not throw`, async () => {
    assert.deepEqual(await linkPurchases(...given), { userId: [], code: [] });
    assert.deepEqual(calls, []);
  });
