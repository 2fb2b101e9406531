// Builds the app, starts it against the real service, and proves a purchase of a user who signed up through its route, and of
// one who signed up on its page in a browser. Needs `npm ci && npm run build` at the root and in sdks/js.
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

test('a purchase of a user who signed up on the page earns for the link that the browser followed', async () => {
  const page = await browser.newPage();
  const problems = [];
  page.on('console', (line) => problems.push(line.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(service.url + (await createLink(service, app, 'summer', shop)));
  await page.getByText(app.affiliateId).waitFor();
  await page.getByPlaceholder('user id').fill('user-2');
  await page.getByRole('button').click();
  await page.getByRole('status').getByText('true').waitFor();
  assert.equal((await purchase(service, app, 'user-2')).affiliateId, app.affiliateId);
  assert.deepEqual(problems, []);
});
