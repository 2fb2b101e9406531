// A visitor follows a link, which opens the app, signs up in it, and pays. Runs against the real service.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp, createLink, follow, purchase, startService } from '../../conformance/service.mjs';
import { runXCTest } from './swift.mjs';

/** Where the SDK keeps its state: a new device each time. */
const DATA = fileURLToPath(new URL('../.build/end-to-end', import.meta.url));

let service;
before(async () => {
  service = await startService();
});
after(async () => {
  await service?.stop();
  await rm(DATA, { recursive: true, force: true });
});

test('a purchase of a user who signed up in the app earns for the link that opened it', async () => {
  const app = await createApp(service, { destinationSchemes: ['exampleshop'] });
  const link = await createLink(service, app, 'spring', 'exampleshop://welcome?utm=1');
  const { code, output } = await runXCTest('EndToEndTests', {
    XDG_DATA_HOME: DATA,
    TRIBUTARY_API_BASE_URL: service.url,
    TRIBUTARY_SDK_KEY: app.sdkKey,
    TRIBUTARY_TEST_LINK: await follow(service, link),
    TRIBUTARY_TEST_AFFILIATE: app.affiliateId,
  });
  assert.equal(code, 0, output.slice(-4000));
  assert.match(output, /Executed 1 test, with 0 failures/);
  const commission = await purchase(service, app, 'user-1');
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
});
