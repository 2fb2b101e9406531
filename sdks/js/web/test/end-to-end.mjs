// A visitor follows a link in a real browser, signs up on the page, and pays. Runs against the real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createApp, createLink, purchase, startService } from '../../../conformance/service.mjs';
import { startBrowser, startSite } from './browser.mjs';

let service;
let site;
let browser;
let sdkKey;
before(async () => {
  [service, browser] = await Promise.all([startService(), startBrowser()]);
  site = await startSite(
    () =>
      `<!doctype html><script async src="/dist/tributary.js" data-api-key="${sdkKey}" data-api-base-url="${service.url}"></script>`,
  );
});
after(async () => {
  await browser?.close();
  site?.close();
  await service?.stop();
});

test('a purchase of a user who signed up on the page earns for the link that the browser followed', async () => {
  const app = await createApp(service);
  ({ sdkKey } = app);
  const link = await createLink(service, app, 'spring', `${site.url}/welcome?a=1`);
  const page = await browser.newPage();
  const problems = [];
  page.on('console', (line) => problems.push(line.text()));

  await page.goto(service.url + link);
  await page.waitForFunction(() => window.tributary?.attributedAffiliateId?.());
  assert.equal(page.url(), `${site.url}/welcome?a=1&via=spring`);
  assert.equal(await page.evaluate(() => tributary.attributedAffiliateId()), app.affiliateId);
  assert.equal(await page.evaluate(() => tributary.identify('user-1')), true);
  assert.equal(await page.evaluate(() => tributary.applyCode('nobody')), false);

  const commission = await purchase(service, app, 'user-1');
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
  assert.deepEqual(problems, []);
});

test('an organic visitor who signs up leaves no error in the console, and can enter a code later', async () => {
  const app = await createApp(service);
  ({ sdkKey } = app);
  await createLink(service, app, 'summer', site.url);
  const page = await (await browser.newContext()).newPage();
  const problems = [];
  page.on('console', (line) => problems.push(line.text()));
  await page.goto(`${site.url}/welcome`);
  await page.waitForFunction(() => window.tributary?.identify);
  assert.equal(await page.evaluate(() => tributary.identify('user-1')), false);
  assert.equal(await page.evaluate(() => tributary.applyCode('SUMMER')), true);
  assert.equal(await page.evaluate(() => tributary.identify('user-1')), true);
  assert.equal((await purchase(service, app, 'user-1')).affiliateId, app.affiliateId);
  assert.deepEqual(problems, []);
});
