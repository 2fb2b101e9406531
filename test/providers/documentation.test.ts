import { expect, test } from '@jest/globals';
import { providers } from '../../src/providers/index.ts';
import { namedTestsIn } from '../support/named-tests.ts';
import { textOf } from '../support/text-of.ts';

const page = textOf('docs/providers.md');

test('each provider has a page that names its user id field', () => {
  const fields: Record<keyof typeof providers, readonly string[]> = {
    revenuecat: ['RevenueCat', 'app_user_id'],
    adapty: ['Adapty', 'customer_user_id'],
    superwall: ['Superwall', 'originalAppUserId'],
    stripe: ['Stripe', 'client_reference_id'],
    paddle: ['Paddle', 'customData'],
  };
  for (const [provider, [title, field]] of Object.entries(fields)) {
    expect(page).toContain(`[${title}](providers/${provider}.md)`);
    expect(textOf(`docs/providers/${provider}.md`)).toMatch(new RegExp(`^# ${title}$[^]*${field}`, 'm'));
  }
});

test('every test that docs/provider-conformance.md names exists', () => {
  const named = namedTestsIn(textOf('docs/provider-conformance.md'));
  expect(named.length).toBeGreaterThan(150);
  const missing = named.filter(([file, words]) => !textOf(file).includes(words));
  expect(missing).toEqual([]);
});
