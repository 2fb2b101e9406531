import { expect, test } from '@jest/globals';
import { providers } from '../../src/providers/index.ts';
import { tableRowsOf, textOf } from '../support/named-tests.ts';

const page = textOf('docs/providers.md');

test('the page about providers has a section for each, and names all of its user id fields', () => {
  const sections: Record<keyof typeof providers, readonly string[]> = {
    revenuecat: ['RevenueCat', 'app_user_id'],
    adapty: ['Adapty', 'customer_user_id'],
    superwall: ['Superwall', 'originalAppUserId'],
    stripe: ['Stripe', 'client_reference_id'],
    paddle: ['Paddle', 'customData'],
  };
  for (const [title, field] of Object.values(sections)) {
    expect(page).toMatch(new RegExp(`^## ${title}$[^]*${field}`, 'm'));
  }
});

test('every test that the page about providers names is there', () => {
  const checked = page.slice(page.indexOf('## What was checked'));
  const named = tableRowsOf(checked).flatMap(({ tests }) => tests);
  expect(named.length).toBeGreaterThan(150);
  const missing = named.filter(([file, words]) => !textOf(file).includes(words));
  expect(missing).toEqual([]);
});
