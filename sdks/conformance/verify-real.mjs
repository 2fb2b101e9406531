// Checks that the named answers of the scripted server are those of the running service: it provokes each answer that a
// scenario uses, and compares status, error code and field names. Needs `npm ci && npm run build` at the root.
import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { readScenarios } from './play.mjs';
import { answerOf } from './server.mjs';
import { createApp, createLink, follow, startService } from './service.mjs';

const HOUR_MS = 3_600_000;
/** Answers that no request provokes, and why. */
const NOT_PROVOKED = { unavailable: 'the database would have to be down' };

const service = await startService();
const { request, key } = service;
const ok = async (...given) => {
  const response = await request(...given);
  assert.ok(response.status < 300, `${given[1]}: ${response.status} ${response.text}`);
  return response.body;
};

/** Returns an app with the link `spring`, and functions that send what an SDK sends. */
async function newApp(settings) {
  const app = await createApp(service, settings);
  const link = await createLink(service, app, 'spring', 'https://shop.test/');
  const send = async (path, body, sdkKey = app.sdkKey, prefix = '') =>
    await request('POST', `${prefix}/sdk/${path}`, {
      key: sdkKey,
      body: { deviceId: 'd', acceptUnattributed: true, sdk: 'web/0.1.0', ...body },
    });
  const install = (body, ...rest) => send('install', { firstOpenAt: Date.now(), ...body }, ...rest);
  const identify = (body) => send('identify', { identifiedAt: Date.now(), customerUserId: 'u', ...body });
  return { app, link, install, identify };
}

/** Turns the verification of user ids on. */
async function verifyUsers({ id }) {
  await ok('POST', `/apps/${id}/identity-secret/rotate`, { key, body: {} });
  await ok('PATCH', `/apps/${id}/settings`, { key, body: { identityVerification: true } });
}

const SPRING = { affiliateCode: 'spring' };

/** How to provoke each answer. */
const PROVOKE = {
  install: {
    won: ({ install }) => install(SPRING),
    existing: async ({ app, install }) => {
      await createLink(service, app, 'summer', 'https://shop.test/');
      await install(SPRING);
      return await install({ affiliateCode: 'summer' });
    },
    keptUnknown: async ({ install }) => {
      await install(SPRING);
      return await install({ affiliateCode: 'nobody' });
    },
    unknown: ({ install }) => install({ claimToken: randomUUID() }),
    no_attributable_click: ({ install }) => install({ affiliateCode: 'nobody', acceptUnattributed: false }),
    ambiguous: async ({ app, link, install }) => {
      const other = await ok('POST', `/apps/${app.id}/affiliates`, { key, body: { name: 'Other' } });
      await follow(service, link);
      await follow(service, await createLink(service, app, 'other', 'https://shop.test/', other.id));
      return await install({ deferred: true });
    },
    invalid: ({ install }) => install({ affiliateCode: 'c'.repeat(201) }),
    invalid_first_open: ({ install }) => install({ ...SPRING, firstOpenAt: Date.now() + HOUR_MS }),
    invalid_code_entered: ({ install }) => install({ ...SPRING, codeEnteredAt: Date.now() + HOUR_MS }),
    unauthorized: ({ install }) => install(SPRING, 'pk_live_test'),
    not_found: ({ install }) => install(SPRING, undefined, '/wrong'),
    payload_too_large: ({ install }) => install({ affiliateCode: 'c'.repeat(40_000) }),
    rate_limited: async ({ install }) => {
      for (;;) {
        const response = await install(SPRING);
        if (response.status !== 200) return response;
      }
    },
  },
  identify: {
    bound: async ({ install, identify }) => {
      await install(SPRING);
      return await identify();
    },
    unbound: ({ identify }) => identify(),
    no_attribution: ({ identify }) => identify({ acceptUnattributed: false }),
    too_many_users: async ({ identify }) => {
      for (let user = 0; user < 10; user += 1) await identify({ customerUserId: `u${user}` });
      return await identify({ customerUserId: 'one too many' });
    },
    invalid_identified: ({ identify }) => identify({ identifiedAt: Date.now() + HOUR_MS }),
    signature_required: async ({ app, identify }) => {
      await verifyUsers(app);
      return await identify();
    },
    invalid_signature: async ({ app, identify }) => {
      await verifyUsers(app);
      return await identify({ signature: createHmac('sha256', 'wrong').update('u').digest('hex') });
    },
  },
};

const paths = (body) => (body.errors ?? []).map(({ path }) => path);

/** Throws if the service answers otherwise than the script. */
function compare(real, name) {
  const scripted = answerOf({ answer: name }, { customerUserId: 'u' });
  const body = JSON.parse(scripted.text);
  assert.equal(real.status, scripted.status);
  assert.equal(real.body.code, body.code);
  assert.deepEqual(paths(real.body), paths(body));
  // A problem may explain more.
  const fields = (value) =>
    Object.keys(value)
      .filter((field) => field !== 'detail')
      .toSorted();
  assert.deepEqual(fields(real.body), fields(body));
  if (real.status === 200) {
    for (const [field, value] of Object.entries(body)) {
      assert.equal(real.body[field] === null, value === null, field);
    }
    assert.equal(real.body.touch, body.touch);
  }
  if (real.status === 429) assert.match(real.headers.get('retry-after'), /^\d+$/);
  if (real.status === 400) assert.ok(Math.abs(Date.parse(real.headers.get('date')) - Date.now()) < 60_000);
}

const used = new Set();
for (const { script = [] } of readScenarios()) {
  for (const { path, answer } of script) {
    const name = typeof answer === 'string' ? answer : answer?.name;
    if (name !== undefined) used.add(`${path} ${name}`);
  }
}
let verified = 0;
let failed = 0;
for (const exchange of [...used].toSorted()) {
  const [path, name] = exchange.split(' ');
  if (name in NOT_PROVOKED) {
    console.log(`not provoked: ${exchange} (${NOT_PROVOKED[name]})`);
    continue;
  }
  try {
    const provoke = PROVOKE[path][name];
    assert.ok(provoke, 'verify-real.mjs has no request that provokes it');
    compare(await provoke(await newApp()), name);
    verified += 1;
  } catch (error) {
    failed += 1;
    console.log(`differs: ${exchange}: ${error.message}`);
  }
}
await service.stop();
console.log(`${verified} scripted answers agree with the service, ${failed} differ.`);
process.exit(failed === 0 ? 0 : 1);
