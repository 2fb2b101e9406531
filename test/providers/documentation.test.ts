import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { providers } from '../../src/providers/index.ts';

const text = (file: string): string => readFileSync(path.join(projectRoot, file), 'utf8');

const page = text('docs/providers.md');

/** Every test that the page names, as a file and words that have to stand in it. */
function namedTests(): [string, string][] {
  const named: [string, string][] = [];
  let fileOfTable: string | undefined;
  for (const line of page.slice(page.indexOf('## What was checked')).split('\n')) {
    if (line.startsWith('#')) fileOfTable = undefined;
    const inHead = /^\| Point \|.*\(`(test\/[^`]+)`\)/.exec(line)?.[1];
    if (inHead !== undefined) fileOfTable = inHead;
    let file = fileOfTable;
    for (const [, nextFile, words] of line.matchAll(/`(test\/[\w./-]+)`|"([^"]+)"/g)) {
      if (nextFile !== undefined) file = nextFile;
      else if (file !== undefined && words !== undefined) named.push([file, words]);
    }
  }
  return named;
}

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
  const named = namedTests();
  expect(named.length).toBeGreaterThan(150);
  const missing = named.filter(([file, words]) => !text(file).includes(words));
  expect(missing).toEqual([]);
});
