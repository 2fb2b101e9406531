// Attributes purchases by an SDK in another process (see remote.mjs), with the real service, clock and timers. The other
// process answers begin({ host, apiKey, referrer }), start(), call(name, arguments) as in play-remote.mjs. `referrer` is what
// the app store passes to the app. node purchase-remote.mjs [store] also plays the installation from an app store.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { serve } from './remote.mjs';
import { createApp, createLink, follow, purchase, startService } from './service.mjs';

// Started by the first purchase: a test runner may ask for the names alone.
let service;

async function expectPurchase(app, userId) {
  const commission = await purchase(service, app, userId);
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
}

async function begin(remote, referrer = null) {
  const app = await createApp(service);
  return {
    app,
    start: async () => {
      await remote('begin', { host: service.url, apiKey: app.sdkKey, referrer: await referrer?.(app) });
      assert.equal(await remote('start'), true);
    },
  };
}

const FLOWS = {
  'a purchase of a user who opened the app by a link earns for the link': async (remote) => {
    const { app, start } = await begin(remote);
    const url = await follow(service, await createLink(service, app, 'spring', 'https://shop.test/?a=1'));
    await start();
    assert.equal(await remote('call', 'attribute', [url]), true);
    assert.equal(await remote('call', 'attributedAffiliateId', []), app.affiliateId);
    assert.equal(await remote('call', 'identify', ['user-1', null]), true);
    await expectPurchase(app, 'user-1');
  },
  'an organic user who enters a code later earns for the creator of the code': async (remote) => {
    const { app, start } = await begin(remote);
    await createLink(service, app, 'summer', 'https://shop.test/');
    await start();
    assert.equal(await remote('call', 'identify', ['user-1', null]), false);
    assert.equal(await remote('call', 'applyCode', ['nobody']), false);
    assert.equal(await remote('call', 'applyCode', ['SUMMER']), true);
    assert.equal(await remote('call', 'identify', ['user-1', null]), true);
    await expectPurchase(app, 'user-1');
  },
};
if (process.argv[2] === 'store')
  FLOWS['a purchase after an installation from the app store earns for the link to the store'] = async (
    remote,
  ) => {
    const store = 'https://play.google.com/store/apps/details?id=test.shop';
    const { app, start } = await begin(remote, async (created) => {
      const url = await follow(service, await createLink(service, created, 'spring', store));
      return new URL(url).searchParams.get('referrer');
    });
    await start();
    assert.equal(await remote('call', 'identify', ['user-1', null]), true);
    for (let tries = 0; tries < 100; tries += 1) {
      if ((await remote('call', 'attributedAffiliateId', [])) !== null) break;
      await delay(50);
    }
    assert.equal(await remote('call', 'attributedAffiliateId', []), app.affiliateId);
    await expectPurchase(app, 'user-1');
  };

await serve({ names: Object.keys(FLOWS), total: Object.keys(FLOWS).length }, async (name, remote) => {
  service ??= await startService();
  await FLOWS[name](remote);
});
await service?.stop();
process.exit();
