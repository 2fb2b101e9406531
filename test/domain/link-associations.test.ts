import { describe, expect, test } from '@jest/globals';
import {
  androidAssociation,
  appleAssociation,
  isAndroidPackage,
  isCertFingerprint,
  isIosAppId,
} from '../../src/domain/link-associations.ts';
import type { AssociatedLinks } from '../../src/domain/link-associations.ts';

const FINGERPRINT = Array.from({ length: 32 }, () => 'A1').join(':');
const KIB = 1024;

test.each([
  ['ABCDE12345.com.example.app', true],
  ['ABCDE12345.app', true],
  ['ABCDE12345.com.example.my-app-2', true],
  [`ABCDE12345.${'a'.repeat(100)}`, true],
  [`ABCDE12345.${'a'.repeat(101)}`, false],
  [`ABCDE12345${'.a'.repeat(10)}`, true],
  [`ABCDE12345${'.a'.repeat(11)}`, false],
  ['com.example.app', false],
  ['ABCDE1234.com.example.app', false],
  ['ABCDE123456.com.example.app', false],
  ['abcde12345.com.example.app', false],
  ['ABCDE12345.', false],
  ['ABCDE12345.com..app', false],
  ['ABCDE12345.com.example.app*', false],
  [' ABCDE12345.com.example.app', false],
  ['ABCDE12345.com.example.app ', false],
])('%j is an app id of Apple: %j', (text, expected) => {
  expect(isIosAppId(text)).toBe(expected);
});

test.each([
  ['com.example.app', true],
  ['com.example', true],
  ['com.Example_2.app', true],
  [`com.${'a'.repeat(100)}`, true],
  [`com.${'a'.repeat(101)}`, false],
  [`${'a'.repeat(100)}.app`, true],
  [`${'a'.repeat(101)}.app`, false],
  [`a${'.a'.repeat(9)}`, true],
  [`a${'.a'.repeat(10)}`, false],
  ['example', false],
  ['com.2example', false],
  ['2com.example', false],
  ['com.example-app', false],
  ['com..example', false],
  ['com.example.', false],
  [' com.example', false],
  ['com.example ', false],
])('%j is the package name of an Android app: %j', (text, expected) => {
  expect(isAndroidPackage(text)).toBe(expected);
});

test.each([
  [FINGERPRINT, true],
  [FINGERPRINT.replace('A1', 'F9'), true],
  [FINGERPRINT.replace('A1', 'G1'), false],
  [FINGERPRINT.toLowerCase(), false],
  [FINGERPRINT.replaceAll(':', ''), false],
  [FINGERPRINT.slice(3), false],
  [`${FINGERPRINT}:A1`, false],
  [` ${FINGERPRINT}`, false],
  [`${FINGERPRINT} `, false],
])('%j is the fingerprint of a certificate: %j', (text, expected) => {
  expect(isCertFingerprint(text)).toBe(expected);
});

const linksOf = (name: string, fields: Partial<AssociatedLinks> = {}): AssociatedLinks => ({
  iosAppIds: [`ABCDE12345.com.example.${name}`],
  androidApps: [{ packageName: `com.example.${name}`, sha256CertFingerprints: [FINGERPRINT] }],
  paths: [`/l/${name}/*`],
  ...fields,
});
const appIdsOf = (file: string | null) => {
  const { applinks } = JSON.parse(file ?? '') as { applinks: { details: { appIDs: string[] }[] } };
  return applinks.details.map(({ appIDs }) => appIDs.at(0));
};

describe('the files that associate links with mobile apps', () => {
  test('open only links with the slug as `via`, of each app under its own paths', () => {
    const lantern = linksOf('lantern', { paths: ['/l/lantern/*', '/l/lamp/*'] });
    const components = [
      { '/': '/l/lantern/*', '?': { via: '?*' } },
      { '/': '/l/lamp/*', '?': { via: '?*' } },
    ];
    expect(JSON.parse(appleAssociation([lantern]) ?? '')).toEqual({
      applinks: { details: [{ appIDs: ['ABCDE12345.com.example.lantern'], components }] },
    });
    expect(JSON.parse(androidAssociation([lantern]) ?? '')).toEqual([
      {
        relation: ['delegate_permission/common.handle_all_urls'],
        target: {
          namespace: 'android_app',
          package_name: 'com.example.lantern',
          sha256_cert_fingerprints: [FINGERPRINT],
        },
        relation_extensions: {
          'delegate_permission/common.handle_all_urls': {
            dynamic_app_link_components: [...components, { '/': '*', exclude: true }],
          },
        },
      },
    ]);
  });

  test('are none without an app of their system', () => {
    const none = linksOf('lantern', { iosAppIds: [], androidApps: [] });
    expect([appleAssociation([none]), androidAssociation([none])]).toEqual([null, null]);
    const web = linksOf('web', { iosAppIds: [] });
    expect(appIdsOf(appleAssociation([web, linksOf('lantern')]))).toEqual(['ABCDE12345.com.example.lantern']);
  });

  test('are filled up to the last byte that Apple reads', () => {
    const ofSize = (length: number) => linksOf('', { paths: ['x'.repeat(length)] });
    const least = Buffer.byteLength(appleAssociation([ofSize(0)]) ?? '');
    // The comma of an entry counts, also that of the last one, which has none.
    const room = 128 * KIB - least - 1;
    expect(Buffer.byteLength(appleAssociation([ofSize(room)]) ?? '')).toBe(128 * KIB - 1);
    expect(appleAssociation([ofSize(room + 1)])).toBeNull();
  });

  test('count bytes and not characters', () => {
    const wide = linksOf('lantern', { paths: ['ü'.repeat(65 * KIB)] });
    expect(appleAssociation([wide])).toBeNull();
  });

  test('have the first apps, and none after the first one that does not fit', () => {
    const large = linksOf('large', { paths: ['x'.repeat(127 * KIB)] });
    const links = [
      linksOf('first'),
      large,
      linksOf('third'),
      linksOf('fourth', { paths: ['x'.repeat(KIB)] }),
    ];
    expect(appIdsOf(appleAssociation(links))).toEqual([
      'ABCDE12345.com.example.first',
      'ABCDE12345.com.example.large',
      'ABCDE12345.com.example.third',
    ]);
    expect(appIdsOf(appleAssociation([...links, linksOf('fifth')]))).toHaveLength(3);
  });

  test('have an eighth of their size for each account, and leave the rest to the other ones', () => {
    const ofAccount = (name: string, accountId: string, length: number) =>
      linksOf(name, { accountId, paths: ['x'.repeat(length)] });
    const links = [
      ofAccount('a', 'acc_1', 9 * KIB),
      ofAccount('b', 'acc_1', 9 * KIB),
      ofAccount('c', 'acc_1', 6 * KIB),
      ofAccount('d', 'acc_2', 9 * KIB),
      ofAccount('e', 'acc_3', 17 * KIB),
    ];
    expect(appIdsOf(appleAssociation(links))).toEqual(
      ['a', 'c', 'd'].map((name) => `ABCDE12345.com.example.${name}`),
    );
  });

  test('give an account its part to the last byte', () => {
    const ofSize = (length: number, accountId?: string) =>
      linksOf('', { paths: ['x'.repeat(length)], ...(accountId === undefined ? {} : { accountId }) });
    const sizeOf = (...links: readonly AssociatedLinks[]) => Buffer.byteLength(appleAssociation(links) ?? '');
    // What an entry takes with its comma.
    const entry = sizeOf(ofSize(0), ofSize(0)) - sizeOf(ofSize(0));
    const room = 16 * KIB - entry;
    expect(appleAssociation([ofSize(room, 'acc_1')])).not.toBeNull();
    expect(appleAssociation([ofSize(room + 1, 'acc_1')])).toBeNull();
    expect(appleAssociation([ofSize(room + 1)])).not.toBeNull();
  });
});
