// The Expo config plugin, with the functions by which Expo writes the native files.
const { AndroidConfig, IOSConfig } = require('@expo/config-plugins');
const withTributary = require('../app.plugin.js');

const APP = { name: 'Shop', slug: 'shop' };
const OPTIONS = { domains: ['tributary.example.com'], scheme: 'shop' };

/** Returns the AndroidManifest that Expo generates from a config. */
const manifestOf = (config) => {
  const activity = {
    $: { 'android:name': '.MainActivity', 'android:launchMode': 'singleTask' },
    'intent-filter': [
      {
        action: [{ $: { 'android:name': 'android.intent.action.MAIN' } }],
        category: [{ $: { 'android:name': 'android.intent.category.LAUNCHER' } }],
      },
    ],
  };
  const application = { $: { 'android:name': '.MainApplication' }, activity: [activity] };
  const empty = { manifest: { $: {}, application: [application] } };
  const manifest = AndroidConfig.IntentFilters.setAndroidIntentFilters(config, empty);
  return AndroidConfig.Scheme.setScheme(config, manifest).manifest.application[0].activity[0][
    'intent-filter'
  ];
};

test('the AndroidManifest has a verified intent filter for each domain, and one for the scheme', () => {
  const filters = JSON.stringify(manifestOf(withTributary(APP, OPTIONS)));
  expect(filters).toContain('"android:autoVerify":"true"');
  expect(filters).toContain(
    '"android:scheme":"https","android:host":"tributary.example.com","android:pathPrefix":"/l/"',
  );
  expect(filters).toContain('{"android:scheme":"shop"}');
  expect(filters).toContain('android.intent.category.BROWSABLE');
});

test('on a domain that apps share, only the links of the app open it', () => {
  const filters = JSON.stringify(manifestOf(withTributary(APP, { ...OPTIONS, pathPrefix: '/l/my-app/' })));
  expect(filters).toContain('"android:pathPrefix":"/l/my-app/"');
  expect(filters).not.toContain('"android:pathPrefix":"/l/"');
});

test('the entitlements and the Info.plist have the domain and the scheme', () => {
  const config = withTributary(APP, OPTIONS);
  expect(IOSConfig.Entitlements.setAssociatedDomains(config, {})).toEqual({
    'com.apple.developer.associated-domains': ['applinks:tributary.example.com'],
  });
  expect(IOSConfig.Scheme.setScheme(config, {})).toMatchObject({
    CFBundleURLTypes: [{ CFBundleURLSchemes: ['shop'] }],
  });
});

test('what the app has stays, and nothing is added twice', () => {
  const app = {
    ...APP,
    scheme: 'old',
    ios: { bundleIdentifier: 'com.example.shop', associatedDomains: ['applinks:shop.example'] },
    android: { package: 'com.example.shop', intentFilters: [{ action: 'SEND' }] },
  };
  const once = withTributary(app, OPTIONS);
  expect(once.scheme).toEqual(['old', 'shop']);
  expect(once.ios).toEqual({
    bundleIdentifier: 'com.example.shop',
    associatedDomains: ['applinks:shop.example', 'applinks:tributary.example.com'],
  });
  expect(once.android.package).toBe('com.example.shop');
  expect(once.android.intentFilters).toHaveLength(2);
  expect(withTributary(once, OPTIONS)).toEqual(once);
  const twice = { domains: ['a.example', 'a.example'] };
  expect(withTributary(APP, twice).android.intentFilters).toHaveLength(1);
});

test('without options the config is as before', () => {
  expect(withTributary(APP)).toEqual(APP);
});

test.each([
  [{ domains: ['https://tributary.example.com'] }, /is no domain/],
  [{ domains: ['tributary.example.com/r'] }, /is no domain/],
  [{ domains: ['Tributary.example.com'] }, /is no domain/],
  [{ domains: 'tributary.example.com' }, /must be a list/],
  [{ pathPrefix: 'l/' }, /is no path prefix/],
  [{ pathPrefix: '/l/?a' }, /is no path prefix/],
  [{ scheme: 'shop://' }, /is no scheme/],
])('the build stops at %j and says why', (options, message) => {
  expect(() => withTributary(APP, options)).toThrow(message);
});
