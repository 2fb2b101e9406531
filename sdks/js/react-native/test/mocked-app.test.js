// The tests of an app that uses the SDK: React Native and AsyncStorage are the mocks that these packages ship for jest.
jest.mock('@react-native-async-storage/async-storage', () =>
  require('@react-native-async-storage/async-storage/jest/async-storage-mock'),
);

test("the SDK runs on React Native's and AsyncStorage's own mocks", async () => {
  const { fetch } = global;
  global.fetch = jest.fn(() => Promise.reject(new Error('no network')));
  const sdk = require('../dist/index.js');
  expect(await sdk.start({ apiKey: 'pk_live_test', apiBaseUrl: 'https://tributary.test' })).toBe(true);
  expect(await sdk.identify('user-1')).toBe(false);
  expect(await sdk.attributedAffiliateId()).toBe(null);
  await sdk.reset();
  global.fetch = fetch;
});
