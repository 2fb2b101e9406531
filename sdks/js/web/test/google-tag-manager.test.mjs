// The template for Google Tag Manager. There is no Tag Manager here: the APIs of its sandbox are implemented below as Google
// documents them, with the permissions that the template declares, and run in a real Chromium.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';

const text = await readFile(new URL('../snippets/google-tag-manager.tpl', import.meta.url), 'utf8');
/** The sections of the template, by name. */
const sections = Object.fromEntries(
  text
    .split(/^(?=___[A-Z_]+___$)/m)
    .filter((section) => section.trim() !== '')
    .map((section) => {
      const [, name, content] = /^___([A-Z_]+)___\n([\s\S]*)$/.exec(section);
      return [name, content];
    }),
);
const code = sections.SANDBOXED_JS_FOR_WEB_TEMPLATE;
const required = [...code.matchAll(/require\('(\w+)'\)/g)].map(([, name]) => name);

/** Returns a value of the format of the permissions as plain data. */
function plain({ type, string, boolean, listItem, mapKey, mapValue }) {
  if (type === 1) return string;
  if (type === 8) return boolean;
  if (type === 2) return listItem.map(plain);
  assert.equal(type, 3);
  return Object.fromEntries(mapKey.map((key, index) => [plain(key), plain(mapValue[index])]));
}
const permissions = Object.fromEntries(
  JSON.parse(sections.WEB_PERMISSIONS).map(({ instance: { key, param } }) => [
    key.publicId,
    Object.fromEntries(param.map((field) => [field.key, plain(field.value)])),
  ]),
);

const SCRIPT = 'https://www.shop.example/tributary.js';
let server;
let site;
let browser;
let page;
let script;

before(async () => {
  server = await startServer();
  site = await startSite(() => '<!doctype html>');
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../src/script-tag.ts', import.meta.url))],
    ...{ bundle: true, write: false, format: 'iife', target: 'es2022' },
    define: { VERSION: '"0.0.0"', HOST: '""', IS_SHARED: 'true' },
  });
  script = outputFiles[0].text;
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});

const lines = [];
/** Ends the wait of the script that a page loads. */
let release;
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext()).newPage();
  lines.length = 0;
  page.on('console', (line) => lines.push(line.text()));
  page.on('pageerror', (error) => lines.push(String(error)));
  let held = Promise.resolve();
  release = undefined;
  page.hold = () => {
    held = new Promise((resolve) => {
      release = resolve;
    });
  };
  await page.route(SCRIPT, async (route) => {
    await held;
    await route.fulfill({ contentType: 'text/javascript', body: script });
  });
});

/** Runs in the page: the sandbox. It keeps what it refused and what the tag reported. */
function defineSandbox({ code: source, permissions: granted }) {
  const listeners = [];
  const scripts = new Map();
  const gtm = { consent: {}, events: [], refused: [] };
  window.gtm = gtm;
  const refuse = (permission) => {
    gtm.refused.push(permission);
    throw new Error(`The template has no permission: ${permission}`);
  };
  const access = (path, right) => {
    const found = granted.access_globals.keys.find(({ key }) => key === path);
    if (!found?.[right]) refuse(`access_globals ${right} ${path}`);
  };
  const consent = (type) => {
    if (!granted.access_consent.consentTypes.find(({ consentType }) => consentType === type)?.read)
      refuse(`access_consent ${type}`);
  };
  const mayInject = (url) =>
    granted.inject_script.urls.some((pattern) =>
      new RegExp(
        `^${pattern.replaceAll(/[.?+^$()[\]\\{}|]/g, String.raw`\$&`).replaceAll('*', '[^/]*')}$`,
      ).test(url),
    );
  const copy = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
  const isGranted = (type) => gtm.consent[type] !== 'denied';
  const apis = {
    addConsentListener(type, listener) {
      consent(type);
      listeners.push([type, listener]);
    },
    callInWindow(path, ...values) {
      access(path, 'execute');
      const names = path.split('.');
      const last = names.pop();
      const owner = names.reduce((value, name) => value?.[name], window);
      return typeof owner?.[last] === 'function' ? owner[last](...values.map(copy)) : undefined;
    },
    getUrl(component) {
      if (component !== undefined || granted.get_url.urlParts !== 'any') refuse('get_url');
      return location.href;
    },
    injectScript(url, onSuccess, onFailure, token) {
      if (!mayInject(url)) refuse(`inject_script ${url}`);
      const cached = token && scripts.get(token);
      const loaded =
        cached ||
        new Promise((resolve, reject) => {
          const element = Object.assign(document.createElement('script'), { async: true, src: url });
          element.onload = resolve;
          element.onerror = reject;
          document.head.append(element);
        });
      if (token) scripts.set(token, loaded);
      loaded.then(onSuccess, onFailure);
    },
    isConsentGranted(type) {
      consent(type);
      return isGranted(type);
    },
    makeString: String,
    queryPermission: (permission, value) => permission === 'inject_script' && mayInject(value),
    setInWindow(path, value, isForced) {
      access(path, 'write');
      const names = path.split('.');
      const last = names.pop();
      const owner = names.reduce((found, name) => found?.[name], window);
      if (owner === undefined || (owner[last] !== undefined && !isForced)) return false;
      owner[last] = copy(value);
      return true;
    },
  };
  gtm.fire = (data) => {
    const report = (event) => () => gtm.events.push(event);
    const require = (name) => apis[name] ?? refuse(`require ${name}`);
    // The template is the body of a function with these names.
    new Function('require', 'data', `'use strict';${source}`)(require, {
      ...data,
      gtmOnSuccess: report('success'),
      gtmOnFailure: report('failure'),
    });
  };
  gtm.update = (type, state) => {
    const before = isGranted(type);
    gtm.consent[type] = state;
    if (before === isGranted(type)) return;
    for (const [listened, listener] of listeners) if (listened === type) listener(type, state === 'granted');
  };
}

const data = (extra = {}) => ({
  scriptUrl: SCRIPT,
  apiKey: 'pk_live_test',
  apiBaseUrl: server.url,
  userId: '',
  ...extra,
});
/** Opens a page of a container whose consent is so. */
async function open(path, consent) {
  await page.goto(site.url + path);
  await page.evaluate(defineSandbox, { code, permissions });
  await page.evaluate((state) => {
    gtm.consent.ad_storage = state;
  }, consent);
}
const fire = (extra) => page.evaluate((values) => gtm.fire(values), data(extra));
const update = (state) => page.evaluate((value) => gtm.update('ad_storage', value), state);
const sent = () => server.state().requests.map(({ path, body }) => [path, body]);
const until = async (condition) => {
  for (let tries = 0; !(await condition()); tries += 1) {
    assert.ok(tries < 500, `not within 10 s: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const stored = async () =>
  JSON.parse(
    await page.evaluate(() => {
      const key = Object.keys(localStorage).find((name) => name.startsWith('tributary'));
      return key === undefined ? null : localStorage.getItem(key);
    }),
  );
const isRefused = async () => {
  const state = await stored();
  return state?.enabled === false && state.isUndecided === undefined && state.deviceId === '';
};
const events = () => page.evaluate(() => gtm.events);
const assertNoProblems = async () => {
  assert.deepEqual(lines, []);
  assert.deepEqual(await page.evaluate(() => gtm.refused), []);
};

test('the template has the sections of a web tag, and its parameters are those that its code reads', () => {
  assert.deepEqual(Object.keys(sections), [
    'INFO',
    'TEMPLATE_PARAMETERS',
    'SANDBOXED_JS_FOR_WEB_TEMPLATE',
    'WEB_PERMISSIONS',
    'TESTS',
    'NOTES',
  ]);
  const info = JSON.parse(sections.INFO);
  assert.deepEqual([info.type, info.containerContexts], ['TAG', ['WEB']]);
  const names = JSON.parse(sections.TEMPLATE_PARAMETERS).map(({ name }) => name);
  const used = new Set([...code.matchAll(/data\.(\w+)/g)].map(([, name]) => name));
  assert.deepEqual([...used].toSorted(), [...names, 'gtmOnFailure', 'gtmOnSuccess'].toSorted());
});

test('the parameters accept an address and a key, and nothing else', () => {
  const parameters = JSON.parse(sections.TEMPLATE_PARAMETERS);
  const accepts = (field, value) => {
    const { valueValidators } = parameters.find(({ name }) => name === field);
    return valueValidators.every(({ type, args }) => type === 'REGEX' && new RegExp(args[0]).test(value));
  };
  assert.ok(accepts('scriptUrl', SCRIPT));
  for (const wrong of ['', 'http://a.example/tributary.js', 'https://a.example/x.js', `${SCRIPT}?v=1`])
    assert.ok(!accepts('scriptUrl', wrong), wrong);
  assert.ok(accepts('apiKey', 'pk_live_1') && accepts('apiKey', 'pk_test_1'));
  for (const wrong of ['', 'tri_sk_live_1', 'pk_live_']) assert.ok(!accepts('apiKey', wrong), wrong);
});

test('the template declares each permission that its APIs need, and no other', () => {
  const NEEDS = {
    addConsentListener: 'access_consent',
    callInWindow: 'access_globals',
    getUrl: 'get_url',
    injectScript: 'inject_script',
    isConsentGranted: 'access_consent',
    makeString: undefined,
    queryPermission: undefined,
    setInWindow: 'access_globals',
  };
  for (const name of required) assert.ok(name in NEEDS, name);
  const needed = new Set(required.map((name) => NEEDS[name]).filter((name) => name !== undefined));
  assert.deepEqual(Object.keys(permissions).toSorted(), [...needed].toSorted());
  const rights = permissions.access_globals.keys.map(({ key, execute }) => [key, execute]);
  const called = new Set([...code.matchAll(/callInWindow\('([\w.]+)'/g)].map(([, path]) => path));
  assert.deepEqual(
    rights
      .filter(([, execute]) => execute)
      .map(([key]) => key)
      .toSorted(),
    [...called].toSorted(),
  );
  assert.deepEqual(permissions.access_consent.consentTypes, [
    { consentType: 'ad_storage', read: true, write: false },
  ]);
});

test('with a consent the tag reports the install and the user, and succeeds without a line in the console', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open('/?via=spring', 'granted');
  await fire({ userId: 'user-1' });
  await until(() => sent().length === 2);
  const [[, install], [, identify]] = sent();
  assert.equal(install.affiliateCode, 'spring');
  assert.equal(identify.customerUserId, 'user-1');
  await until(async () => (await events()).length > 0);
  assert.deepEqual(await events(), ['success']);
  await assertNoProblems();
});

test('a user id that the data layer has as a number is reported as text', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open('/?via=spring', 'granted');
  await fire({ userId: 4711 });
  await until(() => sent().length === 2);
  assert.equal(sent()[1][1].customerUserId, '4711');
  await assertNoProblems();
});

test('without a consent the tag stores and sends nothing, and a late consent sends the referral of the page', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/?via=spring', 'denied');
  await fire();
  assert.deepEqual(await events(), ['success']);
  assert.equal(await stored(), null);
  assert.equal(await page.locator('script').count(), 0);
  await page.evaluate(() => history.pushState(null, '', '/elsewhere'));
  await update('granted');
  await until(() => sent().length === 1);
  assert.equal(sent()[0][1].affiliateCode, 'spring');
  await assertNoProblems();
});

test('a tag that fires before the consent of an earlier page is known keeps the device', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open('/?via=spring', 'granted');
  await fire();
  await until(async () => (await stored())?.affiliateId === 'aff_1');
  await open('/', 'denied');
  await fire({ userId: 'user-1' });
  await update('granted');
  await until(() => sent().length === 2);
  const [[, install], [, identify]] = sent();
  assert.equal(identify.deviceId, install.deviceId);
  await assertNoProblems();
});

test('a revocation deletes everything, and a new consent begins anew without the referral', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'unbound' },
  ]);
  await open('/?via=spring', 'granted');
  await fire();
  await until(async () => (await stored())?.affiliateId === 'aff_1');
  await update('denied');
  await until(isRefused);
  await page.evaluate(() => history.pushState(null, '', '/'));
  await update('granted');
  await until(() => page.evaluate(() => tributary.deviceId() !== null));
  await page.evaluate(() => tributary.identify('user-1'));
  const [[, install], [path, identify]] = sent();
  assert.equal(path, 'identify');
  assert.notEqual(identify.deviceId, install.deviceId);
  await assertNoProblems();
});

test('a revocation while the script is on its way is kept, and nothing is sent', async () => {
  server.load([]);
  await open('/?via=spring', 'granted');
  page.hold();
  await fire({ userId: 'user-1' });
  await update('denied');
  release();
  await until(async () => (await events()).length > 0);
  await until(isRefused);
  assert.deepEqual(sent(), []);
});

test('a second firing after the sign-in adds the user, and a queue of the page is kept', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound', times: 2 },
  ]);
  await open('/?via=spring', 'granted');
  await page.evaluate(() => {
    window.tributary = { q: [['identify', 'user-1']] };
  });
  await fire();
  await until(() => sent().length === 2);
  await fire({ userId: 'user-2' });
  await until(() => sent().length === 3);
  assert.deepEqual(
    sent().map(([path, { customerUserId }]) => [path, customerUserId]),
    [
      ['install', undefined],
      ['identify', 'user-1'],
      ['identify', 'user-2'],
    ],
  );
});

test('an address outside of the permissions fails the tag', async () => {
  server.load([]);
  await open('/', 'granted');
  await fire({ scriptUrl: 'https://www.shop.example/other.js' });
  assert.deepEqual(await events(), ['failure']);
  await assertNoProblems();
});

/** The scenarios of the template, which the editor of Tag Manager runs. */
const scenarios = [
  ...sections.TESTS.matchAll(/- name: (.+)\n {2}code: \|-\n([\s\S]*?)(?=\n- name|\nsetup:)/g),
].map(([, name, body]) => [name, body]);
const [, setup] = /\nsetup: \|-\n([\s\S]*)$/.exec(sections.TESTS);

test('the template has scenarios', () => {
  assert.equal(scenarios.length, sections.TESTS.split('- name:').length - 1);
  assert.ok(scenarios.length >= 5);
});
for (const [name, body] of scenarios)
  test(`the scenario of the template is played: ${name}`, () => {
    const mocks = {};
    const called = new Set();
    const mocked = (api) => {
      assert.ok(api in mocks, `${api} is not mocked`);
      return (...values) => {
        called.add(api);
        return typeof mocks[api] === 'function' ? mocks[api](...values) : mocks[api];
      };
    };
    // Without the globals of Node and of a page, like the sandbox.
    runInNewContext(`'use strict';${setup}\n${body}`, {
      mock: (api, value) => {
        mocks[api] = value;
      },
      runCode: (values) =>
        runInNewContext(`(function (require, data) {'use strict';${code}\n})`)(mocked, {
          ...values,
          gtmOnSuccess: () => called.add('gtmOnSuccess'),
          gtmOnFailure: () => called.add('gtmOnFailure'),
        }),
      assertApi: (api) => ({
        wasCalled: () => assert.ok(called.has(api), `${api} was not called`),
        wasNotCalled: () => assert.ok(!called.has(api), `${api} was called`),
      }),
      assertThat: (actual) => ({ isEqualTo: (expected) => assert.equal(actual, expected) }),
    });
  });
