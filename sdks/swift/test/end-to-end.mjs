// A visitor follows a link, signs up in the app, and pays. Runs against the real service.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp, createLink, follow, purchase, startService } from '../../conformance/service.mjs';
import { buildTests, runXCTest } from './swift.mjs';

/** Where the SDK keeps its states: a new device for each test. */
const DATA = fileURLToPath(new URL('../.build/end-to-end', import.meta.url));

let service;
before(async () => {
  await buildTests();
  service = await startService();
});
after(async () => {
  await service?.stop();
  await rm(DATA, { recursive: true, force: true });
});

/** Runs an XCTest for an app whose link is followed before, and expects that a purchase of its user earns. */
async function expectPurchase(name) {
  const app = await createApp(service, { destinationSchemes: ['exampleshop'] });
  const link = await createLink(service, app, 'spring', 'exampleshop://welcome?utm=1');
  const { code, output } = await runXCTest(`EndToEndTests/${name}$`, {
    XDG_DATA_HOME: join(DATA, name),
    TRIBUTARY_TEST_SERVICE: service.url,
    TRIBUTARY_SDK_KEY: app.sdkKey,
    TRIBUTARY_TEST_LINK: await follow(service, link),
    TRIBUTARY_TEST_AFFILIATE: app.affiliateId,
  });
  assert.equal(code, 0, output.slice(-4000));
  assert.match(output, /Executed 1 test, with 0 failures/);
  const commission = await purchase(service, app, 'user-1');
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
}

test('a purchase of a user who opened the app by a link earns for the link', async () => {
  await expectPurchase('testALinkThatOpensTheAppAttributesItsUser');
});

test('an organic user who enters a code later earns for the creator of the code', async () => {
  await expectPurchase('testAnOrganicUserWhoEntersACodeLaterIsAttributed');
});

test('a purchase after a first open without a link earns by the deferred match', async () => {
  await expectPurchase('testAFirstOpenAfterAClickFromTheSameAddressIsAttributed');
});
