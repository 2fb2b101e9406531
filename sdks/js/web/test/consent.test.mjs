// The recipes of the README for consent tools and the files in snippets, as they are written there, in a real Chromium with
// scripted consent tools that follow the documents of Google and the IAB.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';

const SCRIPT = 'https://tributary.example.com/tributary.js';
const KEY = 'pk_live_test';
const TOKEN = '11111111-1111-4111-8111-111111111111';
const read = (name) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');

let server;
let site;
let browser;
let page;
let script;

/** The consent tools: what a page has in its head, and what they do. `earlier` is a decision of an earlier page. */
const TOOLS = {
  'a callback': {
    file: 'custom-html',
    connect: 'window.tributaryConsent = createConsent(options);',
    head: `<script>window.tool = {
      ask() {},
      decide(isGranted) { tributaryConsent(isGranted); },
      earlier(isGranted) { tributaryConsent(isGranted); },
    };</script>`,
  },
  'Google Consent Mode': {
    file: 'consent-mode',
    connect: 'watchConsentMode(createConsent(options));',
    head: `<script>
      window.dataLayer = window.dataLayer || [];
      function gtag() { dataLayer.push(arguments); }
      const all = (state) => ({ ad_storage: state, ad_user_data: state, ad_personalization: state, analytics_storage: state });
      gtag('consent', 'default', { ...all('denied'), wait_for_update: 500 });
      dataLayer.push({ 'gtm.start': 1, event: 'gtm.js' }, null);
      window.tool = {
        ask() { dataLayer.push({ event: 'banner' }); gtag('consent', 'update', { analytics_storage: 'granted' }); },
        decide(isGranted) { gtag('consent', 'update', all(isGranted ? 'granted' : 'denied')); },
        earlier(isGranted) { this.decide(isGranted); },
      };
    </script>`,
  },
  'the TCF': {
    file: 'tcf',
    connect: 'watchTcf(createConsent(options));',
    // The stub keeps the calls until the tool is loaded.
    head: `<script>
      let waiting = [];
      let listeners = [];
      window.__tcfapi = (...call) => waiting.push(call);
      window.tool = {
        gdprApplies: true,
        load(fields) {
          const answer = (call) => {
            const [command, version, callback] = call;
            if (command !== 'addEventListener' || version !== 2) return void callback(null, false);
            const listenerId = listeners.push(callback);
            callback({ listenerId, cmpId: 7, cmpStatus: 'loaded', gdprApplies: this.gdprApplies, ...fields }, true);
          };
          window.__tcfapi = (...call) => answer(call);
          waiting.forEach(answer);
          waiting = [];
        },
        emit(eventStatus, consents) {
          const fields = { eventStatus, tcString: 'x', purpose: { consents } };
          if (waiting.length > 0) return this.load(fields);
          listeners.forEach((callback, index) =>
            callback({ listenerId: index + 1, cmpStatus: 'loaded', gdprApplies: true, ...fields }, true));
        },
        ask() { this.emit('cmpuishown', {}); },
        decide(isGranted) { this.emit('useractioncomplete', { 1: isGranted, 2: isGranted, 7: isGranted }); },
        earlier(isGranted) { this.emit('tcloaded', { 1: isGranted, 7: isGranted }); },
      };
    </script>`,
  },
  "Shopify's customer privacy": {
    file: 'shopify',
    forms: ['snippet'],
    head: `<script>
      let loaded;
      let decision;
      window.Shopify = {
        loadFeatures(features, callback) {
          if (features[0].name === 'consent-tracking-api') loaded = callback;
        },
        customerPrivacy: { shouldShowBanner: () => decision === undefined, marketingAllowed: () => decision },
      };
      window.tool = {
        ask() { loaded(); },
        decide(isGranted) {
          decision = isGranted;
          const detail = { marketingAllowed: isGranted, analyticsAllowed: true };
          document.dispatchEvent(new CustomEvent('visitorConsentCollected', { detail }));
        },
        earlier(isGranted) { decision = isGranted; loaded(); },
      };
    </script>`,
  },
};

/** The recipes of the README, as one module that a page imports. */
async function recipes() {
  const [, section] = /\n### Consent tools\n([\s\S]*?)\n## /.exec(await read('README.md'));
  const snippets = [...section.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text);
  assert.equal(snippets.length, 3);
  const { code } = await transform(snippets.join('\n'), { loader: 'ts' });
  assert.match(code, /"@tributary\/web"/);
  return code.replace('@tributary/web', `${site.url}/dist/index.js`);
}

before(async () => {
  server = await startServer();
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../src/script-tag.ts', import.meta.url))],
    ...{ bundle: true, write: false, format: 'iife', target: 'es2022' },
    // A release has the address of the service built in.
    define: { VERSION: '"0.0.0"', HOST: JSON.stringify(server.url), IS_SHARED: 'true' },
  });
  script = outputFiles[0].text;
  const pages = {};
  site = await startSite((url) => pages[url.pathname] ?? '<!doctype html>');
  const module = await recipes();
  for (const { file, head, connect } of Object.values(TOOLS)) {
    const snippet = await read(`snippets/${file}.html`);
    assert.ok(snippet.includes(SCRIPT), file);
    pages[`/snippet/${file}`] = `<!doctype html>${head}${snippet.replace('pk_live_…', KEY)}`;
    pages[`/recipe/${file}`] = `<!doctype html>${head}<script type="module">
      ${module}
      const options = { apiKey: '${KEY}', apiBaseUrl: '${server.url}' };
      window.tributary = await import('/dist/index.js');
      window.createConsent = createConsent;
      ${connect}
    </script>`;
  }
  for (const file of ['script-tag', 'identify'])
    pages[`/plain/${file}`] = (await read(`snippets/${file}.html`)).replace('pk_live_…', KEY);
  pages['/plain/identify-first'] = pages['/plain/identify'] + pages['/plain/script-tag'];
  pages['/plain/identify-last'] = pages['/plain/script-tag'].replace('async', '') + pages['/plain/identify'];
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});
beforeEach(async () => {
  await page?.context().close();
  page = await newPage(await browser.newContext());
});

async function newPage(context) {
  const created = await context.newPage();
  await created.route(SCRIPT, (route) => route.fulfill({ contentType: 'text/javascript', body: script }));
  return created;
}
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
const affiliate = () => page.evaluate(() => tributary.attributedAffiliateId?.() ?? null);
const isConnected = () => page.waitForFunction(() => window.tributaryConsent ?? window.createConsent);
const open = async (path) => {
  await page.goto(site.url + path);
  await isConnected();
};
const does = (name, ...given) => page.evaluate(([call, values]) => tool[call](...values), [name, given]);
const isRefused = async () => {
  const state = await stored();
  return state?.enabled === false && state.isUndecided === undefined && state.deviceId === '';
};

for (const [name, { file, forms = ['recipe', 'snippet'] }] of Object.entries(TOOLS))
  for (const form of forms) {
    const path = `/${form}/${file}`;
    const of = `the ${form} for ${name}`;

    test(`${of} stores and sends nothing before a decision, and keeps the referral for a late consent`, async () => {
      server.load([
        { path: 'install', answer: 'won' },
        { path: 'identify', answer: 'bound' },
      ]);
      await open(`${path}?claim_token=${TOKEN}&a=1`);
      await does('ask');
      assert.equal(page.url(), `${site.url}${path}?claim_token=${TOKEN}&a=1`);
      await page.evaluate(() => {
        if (tributary.q) tributary.q.push(['identify', 'user-1']);
        else void tributary.identify('user-1');
        history.pushState(null, '', '/elsewhere');
      });
      assert.equal(await stored(), null);
      assert.deepEqual(sent(), []);
      await does('decide', true);
      await until(() => sent().length === 2);
      const [[, install], [, identify]] = sent();
      assert.equal(install.claimToken, TOKEN);
      assert.equal(identify.customerUserId, 'user-1');
      await until(async () => (await affiliate()) === 'aff_1');
    });

    test(`${of} sends nothing after a refusal, and a later consent sends the referral once`, async () => {
      server.load([{ path: 'install', answer: 'won' }]);
      await open(`${path}?via=spring`);
      await does('ask');
      await does('decide', false);
      await until(isRefused);
      assert.deepEqual(sent(), []);
      await does('decide', true);
      await until(async () => (await affiliate()) === 'aff_1');
      assert.deepEqual(
        sent().map(([, { affiliateCode }]) => affiliateCode),
        ['spring'],
      );
    });

    test(`${of} keeps the device of a visitor who consented on an earlier page`, async () => {
      server.load([
        { path: 'install', answer: 'won' },
        { path: 'identify', answer: 'bound' },
      ]);
      await open(`${path}?via=spring`);
      await does('ask');
      await does('decide', true);
      await until(async () => (await stored())?.affiliateId === 'aff_1');
      const before = await stored();
      await open(path);
      assert.deepEqual(await stored(), before);
      await does('earlier', true);
      await until(async () => (await affiliate()) === 'aff_1');
      assert.equal(await page.evaluate(() => tributary.identify('user-1')), true);
      const [[, install], [, identify]] = sent();
      assert.equal(identify.deviceId, install.deviceId);
    });

    test(`${of} deletes everything on a revocation, on the same and on a later page`, async () => {
      for (const isLater of [false, true]) {
        server.load([{ path: 'install', answer: 'won' }]);
        await page.context().close();
        page = await newPage(await browser.newContext());
        await open(`${path}?via=spring`);
        await does('ask');
        await does('decide', true);
        await until(async () => (await stored())?.affiliateId === 'aff_1');
        if (isLater) await open(path);
        await does(isLater ? 'earlier' : 'decide', false);
        await until(isRefused);
        await until(async () => (await page.evaluate(() => tributary.identify('user-1'))) === false);
        assert.equal(await affiliate(), null);
        assert.equal(sent().length, 1);
      }
    });
  }

for (const form of ['recipe', 'snippet']) {
  test(`the ${form} for Google Consent Mode takes defaults that all grant, and no others`, async () => {
    for (const [defaults, isGranted] of [
      [[{ ad_storage: 'granted' }], true],
      [[{ ad_storage: 'granted' }, { ad_storage: 'denied', region: ['DE'] }], false],
      [[{ analytics_storage: 'granted' }], false],
      [[], false],
    ]) {
      server.load([{ path: 'install', answer: 'won' }]);
      await page.context().close();
      page = await newPage(await browser.newContext());
      await page.addInitScript((given) => {
        window.dataLayer = [];
        // What the page sets itself comes after these, and is not set for a test of the defaults.
        const push = dataLayer.push;
        dataLayer.push = (entry) => (entry?.[1] === 'default' ? 0 : push.call(dataLayer, entry));
        for (const state of given) push.call(dataLayer, ['consent', 'default', state]);
      }, defaults);
      await open(`/${form}/consent-mode?via=spring`);
      if (isGranted) await until(() => sent().length === 1);
      else {
        assert.equal(await stored(), null);
        // The answer of the visitor still counts.
        await does('decide', true);
        await until(() => sent().length === 1);
      }
    }
  });

  test(`the ${form} for Google Consent Mode takes an update that came before it`, async () => {
    server.load([{ path: 'install', answer: 'won' }]);
    await page.addInitScript(() => {
      window.dataLayer = [['consent', 'update', { ad_storage: 'granted' }]];
    });
    await open(`/${form}/consent-mode?via=spring`);
    await until(() => sent().length === 1);
  });

  test(`the ${form} for the TCF takes the consent as given where the GDPR does not apply`, async () => {
    server.load([{ path: 'install', answer: 'won' }]);
    await open(`/${form}/tcf?via=spring`);
    await page.evaluate(() => {
      tool.gdprApplies = false;
      tool.load({});
    });
    await until(() => sent().length === 1);
  });

  test(`the ${form} for the TCF needs the purposes 1 and 7, and no error of the tool`, async () => {
    for (const consents of [{ 1: true }, { 7: true }, { 1: true, 7: false }]) {
      await page.context().close();
      page = await newPage(await browser.newContext());
      server.load([]);
      await open(`/${form}/tcf?via=spring`);
      await page.evaluate((given) => tool.emit('useractioncomplete', given), consents);
      await until(isRefused);
      assert.deepEqual(sent(), []);
    }
    await page.context().close();
    page = await newPage(await browser.newContext());
    await open(`/${form}/tcf?via=spring`);
    await page.evaluate(() => tool.load({ cmpStatus: 'error', gdprApplies: false, eventStatus: 'tcloaded' }));
    assert.equal(await stored(), null);
    assert.deepEqual(sent(), []);
  });
}

test('the snippets of consent tools load the SDK in the same way', async () => {
  const loader = await read('snippets/custom-html.html');
  for (const file of ['consent-mode', 'tcf', 'shopify'])
    assert.ok((await read(`snippets/${file}.html`)).startsWith(loader), file);
});

test('the snippet of the script tag reports the install', async () => {
  server.load([{ path: 'install', answer: 'won' }]);
  await page.goto(`${site.url}/plain/script-tag?via=spring`);
  await until(() => sent().length === 1);
});

for (const place of ['first', 'last'])
  test(`the snippet that identifies a user works as the ${place} one of a page`, async () => {
    server.load([
      { path: 'install', answer: 'won' },
      { path: 'identify', answer: 'bound' },
    ]);
    await page.goto(`${site.url}/plain/identify-${place}?via=spring`);
    await until(() => sent().length === 2);
    assert.equal(sent()[1][1].customerUserId, 'user-4711');
  });

test('the page of the snippets names each file, and no other', async () => {
  const named = [...(await read('snippets/README.md')).matchAll(/`([\w-]+\.(?:html|tpl))`/g)];
  const files = await readdir(new URL('../snippets/', import.meta.url));
  assert.deepEqual(
    [...new Set(named.map(([, name]) => name))].toSorted(),
    files.filter((name) => name !== 'README.md').toSorted(),
  );
});
