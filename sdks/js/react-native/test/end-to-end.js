// A person follows a link that opens the app, signs up in it, and pays. Runs against the real service.
import { createDevice } from './native.js';

const { createApp, createLink, follow, purchase, startService } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');
jest.setTimeout(120_000);

let service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service?.stop();
});

test('a purchase of a user who signed up in the app earns for the link that opened it', async () => {
  const app = await createApp(service);
  const link = await createLink(service, app, 'spring', 'https://shop.test/open?a=1');
  const device = createDevice();
  device.initialUrl = await follow(service, link);

  const sdk = device.launch();
  expect(await sdk.start({ apiKey: app.sdkKey, apiBaseUrl: service.url })).toBe(true);
  expect(await sdk.identify('user-1')).toBe(true);
  expect(await sdk.attributedAffiliateId()).toBe(app.affiliateId);
  expect(await sdk.applyCode('nobody')).toBe(false);

  const commission = await purchase(service, app, 'user-1');
  expect(commission).toMatchObject({ affiliateId: app.affiliateId, amountCents: 2000 });
});

test('a link that comes while the app is open attributes the user who is known already', async () => {
  const app = await createApp(service);
  const link = await createLink(service, app, 'summer', 'https://shop.test/open');
  const device = createDevice();
  const sdk = device.launch();
  const attributed = new Promise((resolve) => {
    void sdk.start({
      apiKey: app.sdkKey,
      apiBaseUrl: service.url,
      deferredMatch: false,
      onAttribution: resolve,
    });
  });
  expect(await sdk.identify('user-1')).toBe(false);
  device.openLink(await follow(service, link));
  expect(await attributed).toBe(app.affiliateId);
  expect(await sdk.identify('user-1')).toBe(true);
  expect((await purchase(service, app, 'user-1')).affiliateId).toBe(app.affiliateId);
});

test('an installation without a link takes the click of its address, and a restart keeps it', async () => {
  const app = await createApp(service);
  await follow(service, await createLink(service, app, 'winter', 'https://shop.test/open'));
  const device = createDevice();
  const options = { apiKey: app.sdkKey, apiBaseUrl: service.url };
  const attributed = new Promise((resolve) => {
    void device.launch().start({ ...options, onAttribution: resolve });
  });
  expect(await attributed).toBe(app.affiliateId);
  while (!device.values.get('tributary').includes(app.affiliateId)) await new Promise(setImmediate);
  const sdk = device.launch();
  await sdk.start(options);
  expect(await sdk.attributedAffiliateId()).toBe(app.affiliateId);
  expect(await sdk.identify('user-1')).toBe(true);
});
