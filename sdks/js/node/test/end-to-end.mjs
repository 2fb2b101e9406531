// A visitor follows a link, signs up on the server, and pays. Runs against the real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createApp, createLink, follow, purchase, startService } from '../../../conformance/service.mjs';
import { createTributary } from '../dist/index.js';

let service;
before(async () => {
  service = await startService();
});
after(async () => {
  await service?.stop();
});

test('a purchase of a user who signed up on the server earns for the link that the visitor followed', async () => {
  const app = await createApp(service);
  const link = await createLink(service, app, 'spring', 'https://shop.test/welcome?utm=1');
  const url = await follow(service, link);

  const tributary = createTributary({ apiKey: app.sdkKey, apiBaseUrl: service.url });
  assert.deepEqual(await tributary.trackSignup({ userId: 'user-1', url }), { affiliateId: app.affiliateId });
  assert.equal(await tributary.trackSignup({ userId: 'user-2' }), null);

  const commission = await purchase(service, app, 'user-1');
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
});

test('the calls for one device attribute its purchase', async () => {
  const app = await createApp(service);
  const url = await follow(service, await createLink(service, app, 'spring', 'https://shop.test/'));
  const device = createTributary({ apiKey: app.sdkKey, apiBaseUrl: service.url }).device('visitor-1');
  assert.equal(await device.identify('user-1'), false);
  assert.equal(await device.attribute(url), true);
  assert.equal(await device.attributedAffiliateId(), app.affiliateId);
  assert.equal(await device.identify('user-1'), true);
  assert.equal((await purchase(service, app, 'user-1')).affiliateId, app.affiliateId);
});
