// What only a real browser shows: storage, events and policies as a page meets them. The clock and the timers are real.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { transform } from 'esbuild';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';

let server;
let site;
let browser;
let page;

const tag = () =>
  `<script async src="/dist/tributary.js" data-api-key="pk_live_test" data-api-base-url="${server.url}"></script>`;

/** A page with the script tag, and calls that were made before it is loaded. */
const withTag = (queue) => `<!doctype html>
<script>window.tributary ??= { q: ${JSON.stringify(queue)} };</script>
${tag()}`;

const PAGES = {
  '/tag': () => withTag([['identify', 'user-1']]),
  '/twice': () => withTag([null, 7, ['nothing'], ['identify', 'user-1']]).repeat(2),
  '/app': () => `<!doctype html>${tag().replace('async', 'async data-app="shop b"')}`,
  '/form': () => `<!doctype html><form id="tributary"></form>${tag()}`,
  '/keyless': () =>
    `<!doctype html><script async src="/dist/tributary.js" data-api-base-url="${server.url}"></script>`,
  '/module': () =>
    '<!doctype html><script type="module">import * as sdk from "/dist/index.js"; window.sdk = sdk;</script>',
  '/policy': () =>
    `<!doctype html><script src="/dist/tributary.js" data-api-key="pk_live_test" data-api-base-url="${server.url}"></script>`,
  '/frame': () =>
    `<!doctype html><iframe sandbox="allow-scripts" srcdoc="${`<script type="module">
      import * as sdk from '${site.url}/dist/index.js';
      const started = await sdk.start({ apiKey: 'pk_live_test', apiBaseUrl: '${server.url}' });
      parent.postMessage([started, await sdk.applyCode('SPRING'), sdk.attributedAffiliateId()], '*');
    </script>`.replaceAll('"', '&quot;')}"></iframe>`,
};

const policy = () =>
  `default-src 'none'; script-src 'self'; connect-src ${server.url}; require-trusted-types-for 'script'`;

before(async () => {
  server = await startServer();
  site = await startSite(
    ({ pathname }) => PAGES[pathname]?.() ?? '<!doctype html>',
    ({ pathname }) => ({
      'access-control-allow-origin': '*',
      ...(pathname === '/policy' && { 'content-security-policy': policy() }),
    }),
  );
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext()).newPage();
});

const TOKEN = '11111111-1111-4111-8111-111111111111';
const options = () => ({ apiKey: 'pk_live_test', apiBaseUrl: server.url });
const sent = () => server.state().requests.map(({ path, body }) => [path, body]);
const open = async (path) => {
  await page.goto(site.url + path);
  await page.waitForFunction(() => window.sdk ?? window.tributary?.start);
};
const start = (extra = {}) => page.evaluate((given) => sdk.start(given), { ...options(), ...extra });
const until = async (condition) => {
  for (let tries = 0; !(await condition()); tries += 1) {
    // A request that another tab has ended is sent again after some seconds, on a busy machine later.
    assert.ok(tries < 1500, `not within 30 s: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const affiliate = () => page.evaluate(() => (window.sdk ?? window.tributary).attributedAffiliateId());

test('the script tag takes the referral of the address and the calls that were made before it was loaded', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open(`/tag?claim_token=${TOKEN}&via=spring`);
  await until(() => sent().length === 2);
  const [[, install], [, identify]] = sent();
  assert.equal(install.claimToken, TOKEN);
  assert.equal(install.affiliateCode, 'spring');
  assert.equal(identify.customerUserId, 'user-1');
  await until(async () => (await affiliate()) === 'aff_1');
});

test('the claim token is removed from the address, and the rest of it and the history state stay', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await page.goto(`${site.url}/module?a=1&claim_token=${TOKEN}&b=%20#part`);
  await page.waitForFunction(() => window.sdk);
  await page.evaluate(() => history.replaceState({ kept: true }, ''));
  await start();
  assert.equal(page.url(), `${site.url}/module?a=1&b=%20#part`);
  assert.deepEqual(await page.evaluate(() => history.state), { kept: true });
  await until(() => sent().length === 1);
});

// The server can't tell: an aborted request may already have opened a connection to it.
test('what is refused or deleted in the same task as its call is not even begun to be sent', async () => {
  server.load([]);
  await page.goto(`${site.url}/module?claim_token=${TOKEN}&via=spring`);
  await page.waitForFunction(() => window.sdk);
  const requests = await page.evaluate(async (given) => {
    const begun = [];
    window.fetch = async (url) => {
      begun.push([String(url), location.search]);
      throw new TypeError('not sent');
    };
    const wait = () => new Promise((resolve) => setTimeout(resolve, 100));
    void sdk.start(given);
    sdk.setEnabled(false);
    await wait();
    sdk.setEnabled(true);
    void sdk.identify('user-1');
    sdk.reset();
    await wait();
    void sdk.applyCode('spring');
    await wait();
    return begun;
  }, options());
  // Only what nothing has cancelled.
  assert.deepEqual(
    requests.map(([url]) => url),
    [`${server.url}/sdk/install`],
  );
});

/** The consent recipe of the README, as a module of a page that starts with this consent. */
async function recipe(hasConsent) {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const [, snippet] = /### Consent[\s\S]*?```ts\n([\s\S]*?)```/.exec(readme);
  const { code } = await transform(snippet, { loader: 'ts', charset: 'utf8' });
  const module = code
    .replace('@tributary/web', '/dist/index.js')
    .replace("{ apiKey: 'pk_live_…' }".replaceAll("'", '"'), JSON.stringify(options()));
  assert.ok(module.includes(server.url), module);
  await page.evaluate(
    async ([text, consent]) => {
      const url = URL.createObjectURL(
        new Blob([text.replace('/dist/', `${location.origin}/dist/`)], { type: 'text/javascript' }),
      );
      window.recipe = await import(url);
      await window.recipe.launchWithConsent(consent);
    },
    [module, hasConsent],
  );
}

test('the consent recipe of the README sends the referral after the consent, and the address stays until then', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open(`/module?claim_token=${TOKEN}&a=1`);
  await recipe(false);
  assert.equal(page.url(), `${site.url}/module?claim_token=${TOKEN}&a=1`);
  assert.deepEqual(sent(), []);
  await page.evaluate(() => recipe.onConsentChosen(true));
  await until(async () => (await affiliate()) === 'aff_1');
  assert.equal(page.url(), `${site.url}/module?a=1`);
  assert.equal(sent()[0][1].claimToken, TOKEN);
  await open('/module');
  await recipe(true);
  assert.equal(await affiliate(), 'aff_1');
});

test('after a refusal by the consent recipe of the README nothing is sent, and the address stays', async () => {
  server.load([]);
  await open(`/module?claim_token=${TOKEN}`);
  await recipe(false);
  await page.evaluate(() => recipe.onConsentChosen(false));
  await open(`/module?claim_token=${TOKEN}`);
  await recipe(false);
  assert.equal(page.url(), `${site.url}/module?claim_token=${TOKEN}`);
  assert.deepEqual(sent(), []);
  const stored = JSON.parse(await page.evaluate(() => localStorage.getItem('tributary')));
  assert.deepEqual([stored.enabled, stored.isUndecided, stored.deviceId], [false, undefined, '']);
});

test('with cleanUrl off the address stays', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open(`/module?claim_token=${TOKEN}`);
  await start({ cleanUrl: false });
  assert.equal(page.url(), `${site.url}/module?claim_token=${TOKEN}`);
  await until(() => sent().length === 1);
});

test('a reload keeps the device and sends the code of the address once', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open('/module?via=spring');
  await start();
  await until(async () => (await affiliate()) === 'aff_1');
  await page.reload();
  await page.waitForFunction(() => window.sdk);
  await start();
  assert.equal(await affiliate(), 'aff_1');
  assert.equal(await page.evaluate(() => sdk.identify('user-1')), true);
  const [[, install], [path, identify]] = sent();
  assert.equal(path, 'identify');
  assert.equal(identify.deviceId, install.deviceId);
  assert.match(install.deviceId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('what was called offline is sent when the browser is online again', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/module');
  await start();
  await page.context().setOffline(true);
  assert.equal(await page.evaluate(() => sdk.applyCode('SPRING')), false);
  await page.context().setOffline(false);
  await until(async () => (await affiliate()) === 'aff_1');
  assert.equal(sent().length, 1);
});

test('an identify is delivered although the page leads to another site at once', async () => {
  server.load([{ path: 'identify', answer: 'bound' }]);
  await open('/module');
  await start();
  let isLeft = false;
  // The preflight is answered after the page is gone.
  server.onPreflight(() => until(() => isLeft));
  try {
    await page.evaluate((url) => {
      void sdk.identify('user-1');
      location.href = url;
    }, `http://localhost:${site.port}/checkout`);
    await page.waitForURL(/checkout/);
    isLeft = true;
    await until(() => sent().length === 1);
  } finally {
    isLeft = true;
    server.onPreflight(async () => {});
  }
});

test('a page without access to its storage works from memory', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const message = await (async () => {
    await page.goto(`${site.url}/module`);
    const received = page.evaluate(
      () =>
        new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data), { once: true })),
    );
    await page.evaluate((html) => document.body.insertAdjacentHTML('beforeend', html), PAGES['/frame']());
    return await received;
  })();
  assert.deepEqual(message, [true, true, 'aff_1']);
});

test('a strict content security policy is kept', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const problems = [];
  page.on('console', (line) => problems.push(line.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await open('/policy?via=spring');
  await until(async () => (await affiliate()) === 'aff_1');
  assert.deepEqual(problems, []);
});

test('an answer that arrives after reset counts for nothing', async () => {
  server.load([{ path: 'install', hold: true, answer: 'won' }]);
  await open('/module?via=spring');
  await start();
  await until(() => server.state().held === 1);
  await page.evaluate(() => sdk.reset());
  server.release();
  await until(() => server.state().held === 0);
  assert.equal(await affiliate(), null);
  assert.equal(await page.evaluate(() => localStorage.getItem('tributary')), null);
});

test('a storage that ignores a write leaves the calls working from memory', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/module');
  await page.evaluate(() => {
    Storage.prototype.setItem = () => {};
  });
  await start();
  assert.equal(await page.evaluate(() => sdk.applyCode('SPRING')), true);
  assert.equal(await affiliate(), 'aff_1');
});

test('the device id is that of the requests, and null without a consent', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/module?via=spring');
  assert.equal(await page.evaluate(() => sdk.deviceId()), null);
  await start();
  await until(async () => (await affiliate()) === 'aff_1');
  assert.equal(await page.evaluate(() => sdk.deviceId()), sent()[0][1].deviceId);
  await page.evaluate(() => sdk.setEnabled(false));
  assert.equal(await page.evaluate(() => sdk.deviceId()), null);
});

test('a script tag starts beside an element with its name, calls that are none, and a second tag, and sends once', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(`${site.url}/twice?via=spring`);
  await until(() => sent().length === 2);
  await until(async () => (await affiliate()) === 'aff_1');
  await page.goto(`${site.url}/form`);
  await page.waitForFunction(() => window.tributary?.start);
  assert.equal(await affiliate(), 'aff_1');
  assert.deepEqual(problems, []);
  assert.equal(sent().length, 2);
});

test('a script tag without a key logs one line', async () => {
  const lines = [];
  page.on('console', (line) => lines.push(line.text()));
  await page.goto(`${site.url}/keyless`);
  await until(() => lines.length > 0);
  assert.match(lines.join(), /^\[tributary\] No SDK key/);
});

test('a damaged cookie is replaced', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/module?via=spring');
  await page.evaluate((given) => {
    document.cookie = 'tributary=%E0%A4%A';
    return sdk.start({ ...given, storage: sdk.cookieStorage() });
  }, options());
  await until(async () => (await affiliate()) === 'aff_1');
  const text = await page.evaluate(() => sdk.cookieStorage().get('tributary'));
  assert.equal(JSON.parse(text).affiliateId, 'aff_1');
});

test('two tabs are one device, and a reset in one holds for the other', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', hold: true, answer: 'bound' },
  ]);
  await open('/module?via=spring');
  await start();
  await until(async () => (await affiliate()) === 'aff_1');
  const other = await page.context().newPage();
  await other.goto(`${site.url}/module`);
  await other.waitForFunction(() => window.sdk);
  // Browsers pass writes to other tabs with a delay.
  const isStored = () => other.evaluate(() => localStorage.getItem('tributary') !== null);
  await until(isStored);
  await other.evaluate((given) => sdk.start(given), options());
  await until(async () => (await other.evaluate(() => sdk.attributedAffiliateId())) === 'aff_1');
  const identified = other.evaluate(() => sdk.identify('user-1'));
  await until(() => server.state().held === 1);
  await page.evaluate(() => sdk.reset());
  await until(async () => !(await isStored()));
  server.release();
  assert.equal(await identified, false);
  assert.equal(await other.evaluate(() => sdk.attributedAffiliateId()), null);
  assert.equal(await page.evaluate(() => localStorage.getItem('tributary')), null);
});

test('a refusal in onAttribution lasts', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/module?via=spring');
  await page.evaluate((given) => {
    const onAttribution = () => {
      window.wasCalled = true;
      sdk.setEnabled(false);
    };
    return sdk.start({ ...given, onAttribution });
  }, options());
  await page.waitForFunction(() => window.wasCalled);
  const stored = JSON.parse(await page.evaluate(() => localStorage.getItem('tributary')));
  assert.equal(stored.enabled, false);
  assert.equal(stored.affiliateId, null);
});

/** Starts the SDK in another tab, to which the browser passes on what the first one wrote only after `passOn()`. */
const startUnaware = async (path) => {
  const other = await page.context().newPage();
  await other.goto(site.url + path);
  await other.waitForFunction(() => window.sdk);
  await other.evaluate(async (given) => {
    const { getItem, setItem } = Storage.prototype;
    const own = {};
    Storage.prototype.getItem = (key) => own[key] ?? null;
    Storage.prototype.setItem = function set(key, value) {
      own[key] = value;
      setItem.call(this, key, value);
    };
    await sdk.start(given);
    window.passOn = () => Object.assign(Storage.prototype, { getItem, setItem });
  }, options());
  return other;
};

for (const [what, call, answers] of [
  ['nothing', () => {}, ['bound']],
  // The first answer is for the device that the other tab replaces.
  ['a user', () => sdk.identify('user-1'), ['unbound', 'bound', 'bound']],
]) {
  test(`two tabs of a first visit, one with a referral and one with ${what}, are one attributed device`, async () => {
    server.load([
      { path: 'install', hold: true, answer: 'won' },
      ...answers.map((answer) => ({ path: 'identify', answer })),
    ]);
    await open('/module?via=spring');
    await start();
    await until(() => server.state().held === 1);
    const other = await startUnaware('/module');
    await other.evaluate(call);
    await other.evaluate(() => passOn());
    server.release();
    await until(async () => (await affiliate()) === 'aff_1');
    await until(async () => (await other.evaluate(() => sdk.attributedAffiliateId())) === 'aff_1');
    assert.equal(await other.evaluate(() => sdk.identify('user-1')), true);
    const ids = await Promise.all([page, other].map((tab) => tab.evaluate(() => sdk.deviceId())));
    const [[, install], ...identified] = sent();
    assert.deepEqual(ids, [install.deviceId, install.deviceId]);
    assert.equal(identified.at(-1)[1].deviceId, install.deviceId);
  });
}

test('two tabs of a first visit, each with a referral, settle on one device, which reports both', async () => {
  server.load([
    { path: 'install', hold: true, answer: 'won', times: 2 },
    { path: 'install', answer: 'won', times: 8 },
  ]);
  await open('/module?via=spring');
  await start();
  await until(() => server.state().held === 1);
  const other = await startUnaware('/module?via=summer');
  await until(() => server.state().held === 2);
  await other.evaluate(() => passOn());
  const inTabs = (run) => Promise.all([page, other].map((tab) => tab.evaluate(run)));
  const ids = async () => new Set(await inTabs(() => sdk.deviceId()));
  await until(async () => (await ids()).size === 1);
  const [id] = await ids();
  server.release();
  for (const code of ['spring', 'summer'])
    await until(() => sent().some(([, body]) => body.deviceId === id && body.affiliateCode === code));
  await until(async () =>
    (await inTabs(() => sdk.attributedAffiliateId())).every((found) => found === 'aff_1'),
  );
  assert.deepEqual([...(await ids())], [id]);
});

/** Writes what a tab of the same device stores that has not seen what this one wrote: browsers pass writes on with a delay. */
const overwrite = (change) =>
  page.evaluate((given) => {
    const state = JSON.parse(localStorage.getItem('tributary'));
    localStorage.setItem('tributary', JSON.stringify({ ...state, ...given }));
  }, change);
const stored = () => page.evaluate(() => JSON.parse(localStorage.getItem('tributary')));

test('a referral that another tab has overwritten without having seen it is kept and sent', async () => {
  server.load([
    { path: 'install', hold: true, answer: 'won' },
    { path: 'install', answer: 'won' },
  ]);
  await open('/module?via=spring');
  await start();
  await until(() => server.state().held === 1);
  await page.evaluate(() => void sdk.applyCode('summer'));
  await overwrite({ touches: [], answered: [{ touch: ' spring', isAccepted: true }] });
  assert.equal(await affiliate(), null);
  assert.deepEqual(
    (await stored()).touches.map(({ code }) => code),
    ['summer'],
  );
  server.release();
  await until(() => sent().length === 2);
  assert.equal(sent()[1][1].affiliateCode, 'summer');
});

test('another tab may refuse a user and replace the oldest of five referrals', async () => {
  server.load([{ path: 'install', hold: true, answer: 'won' }]);
  await open('/module?via=spring');
  await start();
  await until(() => server.state().held === 1);
  await page.evaluate(() => void sdk.identify('user-1'));
  const touches = ['a1', 'a2', 'a3', 'a4', 'a5'].map((code) => ({ code, at: Date.now() }));
  await overwrite({ users: [], touches });
  assert.equal(await affiliate(), null);
  const { users, touches: left } = await stored();
  assert.deepEqual([users, left], [[], touches]);
});

test('a reset of one tab of a first visit deletes what the other one has', async () => {
  server.load([{ path: 'identify', answer: 'unbound', times: 2 }]);
  await open('/module');
  await start();
  await page.evaluate(() => sdk.identify('user-1'));
  const other = await page.context().newPage();
  await other.goto(`${site.url}/module`);
  await other.waitForFunction(() => window.sdk);
  await until(() => other.evaluate(() => localStorage.getItem('tributary') !== null));
  await other.evaluate((given) => sdk.start(given), options());
  await other.evaluate(() => {
    sdk.reset();
    return sdk.identify('user-2');
  });
  const users = () => page.evaluate(() => JSON.parse(localStorage.getItem('tributary')).users);
  await until(async () => (await users())[0].id === 'user-2');
  assert.equal(await affiliate(), null);
  assert.equal((await users()).length, 1);
});

test('a reset in one tab deletes what waits for a consent in another one', async () => {
  server.load([{ path: 'identify', answer: 'unbound' }]);
  const startUndecided = async (tab) => {
    await tab.waitForFunction(() => window.sdk);
    await tab.evaluate((given) => {
      sdk.setEnabled(false);
      return sdk.start(given);
    }, options());
  };
  await open('/module');
  await startUndecided(page);
  // The first visit was an hour ago.
  await overwrite({ firstOpenAt: Date.now() - 3_600_000 });
  await page.reload();
  await startUndecided(page);
  const other = await page.context().newPage();
  await other.goto(`${site.url}/module?via=spring`);
  await startUndecided(other);
  await other.evaluate(() => void sdk.identify('user-1'));
  const before = await other.evaluate(() => localStorage.getItem('tributary'));
  await page.evaluate(() => sdk.reset());
  await until(async () => (await other.evaluate(() => localStorage.getItem('tributary'))) !== before);
  await other.evaluate(() => sdk.attributedAffiliateId());
  await other.evaluate(() => {
    sdk.setEnabled(true);
    return sdk.identify('user-2');
  });
  assert.deepEqual(
    sent().map(([path, body]) => [path, body.customerUserId]),
    [['identify', 'user-2']],
  );
});

test('the state of an app with a name has a key of its own, also with the script tag', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await open('/app?via=spring');
  await until(async () => (await affiliate()) === 'aff_1');
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), ['tributary-shop_b']);
});

for (const path of ['/module', '/tag']) {
  test(`${path} with tributary_debug in its address prints the state after the start and after each change`, async () => {
    server.load([
      { path: 'identify', answer: 'unbound' },
      { path: 'install', answer: 'won' },
      { path: 'identify', answer: 'bound' },
    ]);
    const states = [];
    page.on('console', async (line) => {
      const [first, second] = line.args();
      if (line.text().startsWith('[tributary]')) states.push(await second.jsonValue());
      else if (line.type() === 'table') states.push(await first.jsonValue());
    });
    await page.goto(`${site.url}${path}?a=1&tributary_debug`);
    await page.waitForFunction(() => window.sdk ?? window.tributary?.start);
    if (path === '/module') {
      await start();
      await page.evaluate(() => sdk.identify('user-1'));
    }
    const has = (text) => JSON.stringify(states).includes(text);
    await until(() => has('"attribution":"none"') && has('"kind":"user","outcome":"accepted"'));
    await page.evaluate(() => (window.sdk ?? window.tributary).applyCode('SPRING'));
    await until(() => has('"attribution":"attributed"') && has('"kind":"code","outcome":"accepted"'));
    assert.ok(!/SPRING|user-1|aff_1/.test(JSON.stringify(states)), JSON.stringify(states));
  });
}

test('a page loads the debug file only when it is asked for, and works without it', async () => {
  server.load([]);
  const loaded = [];
  await page.route('**/tributary-debug.js', (route) => {
    loaded.push(route.request().url());
    return route.abort();
  });
  await open('/module');
  await start();
  assert.deepEqual(loaded, []);
  assert.equal(await page.evaluate(() => sdk.debugState()), null);
  await page.unroute('**/tributary-debug.js');
  await open('/module?tributary_debug=');
  await start();
  assert.equal((await page.evaluate(() => sdk.debugState())).consent, 'granted');
});

test('cookieStorage is shared by the subdomains of a site', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  const startOn = async (host) => {
    await page.goto(`http://${host}.shop.localhost:${site.port}/module?via=spring`);
    await page.waitForFunction(() => window.sdk);
    await page.evaluate(
      (given) => sdk.start({ ...given, storage: sdk.cookieStorage({ domain: 'shop.localhost' }) }),
      options(),
    );
  };
  await startOn('www');
  await until(async () => (await affiliate()) === 'aff_1');
  await startOn('app');
  assert.equal(await affiliate(), 'aff_1');
  await page.evaluate(() => sdk.reset());
  assert.equal(await page.evaluate(() => document.cookie), '');
  assert.equal(sent().length, 1);
});

test('an app that changes its cookie domain and gets a name begins anew, and a refusal stays one', async () => {
  server.load([{ path: 'install', answer: 'won', times: 2 }]);
  const startOn = async (domain, extra) => {
    await page.goto(`http://www.shop.localhost:${site.port}/module?via=spring`);
    await page.waitForFunction(() => window.sdk);
    await page.evaluate(
      ([given, to]) => sdk.start({ ...given, storage: sdk.cookieStorage({ domain: to }) }),
      [{ ...options(), ...extra }, domain],
    );
    return await page.evaluate(() => sdk.deviceId());
  };
  const before = await startOn(undefined);
  await until(async () => (await affiliate()) === 'aff_1');
  const after = await startOn('shop.localhost', { app: 'shop' });
  assert.notEqual(after, before);
  await until(async () => (await affiliate()) === 'aff_1');
  assert.equal(await startOn('shop.localhost', { app: 'shop' }), after);
  await startOn(undefined);
  await page.evaluate(() => sdk.setEnabled(false));
  assert.equal(await startOn('shop.localhost', { app: 'other' }), null);
  assert.equal(sent().length, 2);
});

test('a start, an identify and a cookieStorage with null, and an address without a text, reject nothing', async () => {
  await open('/module');
  assert.equal(await page.evaluate(() => sdk.cookieStorage(null).get('none')), null);
  assert.equal(await page.evaluate(() => sdk.attribute(Object.create(null))), false);
  assert.equal(await page.evaluate(() => sdk.start(null)), false);
  assert.equal(await page.evaluate(() => sdk.identify('user-1', null)), false);
});

test('cookieStorage works from memory on a domain that the browser refuses', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  await open('/module');
  await page.evaluate(
    (given) => sdk.start({ ...given, storage: sdk.cookieStorage({ domain: 'other.test' }) }),
    options(),
  );
  assert.equal(await page.evaluate(() => sdk.applyCode('SPRING')), true);
  assert.equal(await affiliate(), 'aff_1');
  assert.equal(await page.evaluate(() => sdk.identify('user-1')), true);
  const [[, install], [, identify]] = sent();
  assert.equal(identify.deviceId, install.deviceId);
  assert.equal(await page.evaluate(() => document.cookie), '');
});

test('the module can be imported where there is no window, and start is then false', async () => {
  const sdk = await import('../dist/index.js');
  assert.equal(await sdk.start({ apiKey: 'pk_live_test', apiBaseUrl: server.url }), false);
  assert.equal(sdk.attributedAffiliateId(), null);
});
