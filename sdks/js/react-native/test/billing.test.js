// The helper for billing SDKs with the real JavaScript of RevenueCat and Adapty, whose native modules are in memory, and with the
// types of every billing SDK. What it does when one fails is tested in ../../test/link-purchases.test.mjs.
const { execFileSync } = require('node:child_process');
const { mkdirSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { NativeModules } = require('react-native');

const FOLDER = join(__dirname, '..');

// The part of RevenueCat for browsers is an ES module, which this jest does not load. An app on a device does not use it.
jest.mock('@revenuecat/purchases-js-hybrid-mappings', () => ({}));
jest.mock('@react-native-async-storage/async-storage', () =>
  require('@react-native-async-storage/async-storage/jest/async-storage-mock'),
);

jest.setTimeout(60_000);

test("RevenueCat's and Adapty's native modules receive the user id and the code", async () => {
  const received = [];
  const record =
    (name) =>
    async (...given) =>
      void received.push([name, ...given]);
  NativeModules.RNPurchases = {
    isConfigured: async () => true,
    logIn: record('logIn'),
    setAttributes: record('setAttributes'),
    addListener: () => {},
    removeListeners: () => {},
  };
  NativeModules.RNAdapty = {
    handler: async (name, { args }) => {
      received.push([name, JSON.parse(args)]);
      return JSON.stringify({ success: true });
    },
    getConstants: () => ({ HANDLER: 'handler' }),
    HANDLER: 'handler',
    addListener: () => {},
    removeListeners: () => {},
  };
  const { default: revenueCat } = require('react-native-purchases');
  // Without its screens, which are JSX.
  const { Adapty } = require('react-native-adapty/dist/adapty-handler.js');
  const adapty = new Adapty();
  const { linkPurchases } = require('../dist/index.js');
  const linked = await linkPurchases('user-1', { revenueCat, adapty }, { code: 'SPRING' });
  expect(linked).toEqual({ userId: ['revenueCat', 'adapty'], code: ['revenueCat', 'adapty'] });
  expect(received.filter(([name]) => /^[a-z]+[A-Z]/.test(name))).toEqual([
    ['logIn', 'user-1'],
    ['setAttributes', { tributary_code: 'SPRING' }],
  ]);
  expect(received.filter(([, given]) => given.method)).toEqual([
    ['identify', { method: 'identify', customer_user_id: 'user-1' }],
    [
      'update_profile',
      {
        method: 'update_profile',
        params: { custom_attributes: { tributary_code: 'SPRING' } },
      },
    ],
  ]);
});

test('the types take the objects of the billing SDKs, and not one in the place of another', () => {
  const folder = join(FOLDER, 'dist/billing-types');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'app.ts'),
    `import { linkPurchases } from '@tributary/react-native';
import type { BillingSdks } from '@tributary/react-native';
import { Purchases as WebPurchases } from '@revenuecat/purchases-js';
import { useUser } from 'expo-superwall';
import Superwall from 'expo-superwall/compat';
import { adapty } from 'react-native-adapty';
import Purchases from 'react-native-purchases';

export async function link(user: ReturnType<typeof useUser>): Promise<void> {
  await linkPurchases('user-1', { revenueCat: Purchases, adapty, superwall: user }, { code: 'SPRING' });
  await linkPurchases('user-1', { revenueCat: WebPurchases.getSharedInstance() });
  await linkPurchases('user-1', { superwall: Superwall.shared });
}

// Each of these lines must be an error, which also shows that the types above are not any.
// @ts-expect-error
export const adaptyAsRevenueCat: BillingSdks = { revenueCat: adapty };
// @ts-expect-error
export const purchasesAsAdapty: BillingSdks = { adapty: Purchases };
// @ts-expect-error
export const webPurchasesAsAdapty: BillingSdks = { adapty: WebPurchases.getSharedInstance() };
// @ts-expect-error
export const superwallAsAdapty: BillingSdks = { adapty: Superwall.shared };
// @ts-expect-error
export const userAsAdapty = (user: ReturnType<typeof useUser>): BillingSdks => ({ adapty: user });
`,
  );
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    target: 'es2022',
    lib: ['es2022', 'dom'],
    module: 'preserve',
    types: ['react-native'],
    skipLibCheck: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  try {
    execFileSync(join(FOLDER, '../node_modules/.bin/tsc'), ['-p', folder]);
  } catch (error) {
    throw new Error(String(error.stdout));
  }
});
