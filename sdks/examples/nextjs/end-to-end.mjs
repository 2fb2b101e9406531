// Builds the app, starts it against the real service, and proves a purchase of a user who signed up through its route, and of
// one who consented and signed up on its pages in a browser. Needs `npm ci && npm run build` at the root and in sdks/js.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createApp,
  createLink,
  follow,
  freePort,
  purchase,
  startService,
} from '../../conformance/service.mjs';
import { startBrowser } from '../../js/web/test/browser.mjs';

const NEXT = 'node_modules/next/dist/bin/next';
process.chdir(import.meta.dirname);

let service;
let browser;
let app;
let shop;
let child;
before(async () => {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
  execFileSync(process.execPath, [NEXT, 'build'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  [service, browser] = await Promise.all([startService(), startBrowser()]);
  app = await createApp(service);
  const port = await freePort();
  shop = `http://127.0.0.1:${port}`;
  child = spawn(process.execPath, [NEXT, 'start', '--hostname', '127.0.0.1', '--port', String(port)], {
    env: { ...env, TRIBUTARY_SDK_KEY: app.sdkKey, TRIBUTARY_API_BASE_URL: service.url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (let tries = 0; !(await fetch(shop).catch(() => undefined))?.ok; tries += 1) {
    assert.ok(tries < 300, 'The app did not start.');
    await delay(100);
  }
});
after(async () => {
  child?.kill();
  await browser?.close();
  await service?.stop();
});

test('a purchase of a user who signed up through the route earns for the link that the visitor followed', async () => {
  const url = await follow(service, await createLink(service, app, 'spring', `${shop}/welcome`));
  const response = await fetch(`${shop}/api/signup`, {
    method: 'POST',
    body: JSON.stringify({ userId: 'user-1', url }),
  });
  assert.deepEqual(await response.json(), { affiliateId: app.affiliateId });
  const commission = await purchase(service, app, 'user-1');
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
});

/** Opens a page of the shop. `sent` has the paths that its SDK requested, and `problems` what the browser complained about. */
async function openPage(context) {
  const page = await context.newPage();
  const sent = [];
  const problems = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/sdk/')) sent.push(pathname);
  });
  page.on('console', (line) => problems.push(line.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  return { page, sent, problems };
}
const affiliateIs = (page, text) => page.locator('output').getByText(text, { exact: true }).waitFor();

test('a purchase of a user who consented on another page and signed up earns for the link that the browser followed', async () => {
  const { page, sent, problems } = await openPage(await browser.newContext());
  await page.goto(service.url + (await createLink(service, app, 'summer', shop)));
  await page.getByText('Your choice: none yet').waitFor();
  await affiliateIs(page, 'none');
  // The page is not loaded again: the referral waits in memory.
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByText('Signed in as nobody').waitFor();
  assert.ok(!page.url().includes('claim_token'), page.url());
  assert.deepEqual(sent, []);
  await page.getByRole('button', { name: 'Accept' }).click();
  await affiliateIs(page, app.affiliateId);

  await page.getByRole('link', { name: 'Shop' }).click();
  await page.getByPlaceholder('user id').fill('user-2');
  const identified = page.waitForResponse((response) => response.url().endsWith('/sdk/identify'));
  await page.getByRole('button', { name: 'Sign up' }).click();
  assert.equal((await identified).status(), 200);
  assert.equal((await purchase(service, app, 'user-2')).affiliateId, app.affiliateId);

  await page.reload();
  await affiliateIs(page, app.affiliateId);
  assert.deepEqual(sent, ['/sdk/install', '/sdk/identify']);
  assert.deepEqual(problems, []);
});

test('a visitor who refuses is not reported, also after a reload and a sign-up', async () => {
  const { page, sent, problems } = await openPage(await browser.newContext());
  await page.goto(service.url + (await createLink(service, app, 'autumn', shop)));
  await page.getByText('Your choice: none yet').waitFor();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.reload();
  await page.getByText('Your choice: refused').waitFor();
  await page.getByPlaceholder('user id').fill('user-3');
  await page.getByRole('button', { name: 'Sign up' }).click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByText('Signed in as user-3').waitFor();
  await affiliateIs(page, 'none');
  assert.deepEqual(sent, []);
  assert.deepEqual(problems, []);
});

test('a revocation on a page deletes the affiliate', async () => {
  const { page, problems } = await openPage(await browser.newContext());
  await page.goto(service.url + (await createLink(service, app, 'winter', shop)));
  await page.getByText('Your choice: none yet').waitFor();
  await page.getByRole('button', { name: 'Accept' }).click();
  await affiliateIs(page, app.affiliateId);
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByText('Signed in as nobody').waitFor();
  await affiliateIs(page, 'none');
  assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(app.affiliateId));
  assert.deepEqual(problems, []);
});
