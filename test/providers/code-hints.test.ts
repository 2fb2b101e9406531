import { expect, test } from '@jest/globals';
import { codeHintOf, codesArriveBy } from '../../src/providers/code-hints.ts';

const OF_APP_STORE =
  'Buy with an offer code of the App Store. Its code here has to be the reference name of the offer, not what customers type.';

test('a provider that states codes of a namespace says how its purchases come to have them', () => {
  expect(codeHintOf('superwall', 'app_store')).toBe(OF_APP_STORE);
  expect(codeHintOf('superwall', 'stripe')).toBeNull();
});

test('each hint of the connected providers is said once, and without one the providers are named that have any', () => {
  expect(codesArriveBy('app_store', ['revenuecat', 'superwall', 'stripe'])).toBe(OF_APP_STORE);
  expect(codesArriveBy('play_store', ['revenuecat', 'adapty'])).toMatch(
    /RevenueCat states.*\. Buy.*in Adapty, which it states/,
  );
  expect(codesArriveBy('app_store', ['stripe'])).toBe(
    'No connected provider states such codes. Connect RevenueCat or Adapty or Superwall.',
  );
  expect(codesArriveBy('paddle', [])).toBe('No connected provider states such codes. Connect Paddle.');
});
