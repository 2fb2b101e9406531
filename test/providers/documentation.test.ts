import { expect, test } from '@jest/globals';
import { providers } from '../../src/providers/index.ts';
import { namedTestsIn } from '../support/named-tests.ts';
import { textOf } from '../support/text-of.ts';

/** Names of fields, functions and paths in a text, such as `app_user_id` and `logIn`. */
const NAME = /\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+(?:[A-Z][a-z]+)+\b/g;

test.each(Object.values(providers))(
  '$title has a page that names its user id field and all other names of its setup hint',
  ({ name, title, setupHint }) => {
    const page = textOf(`docs/providers/${name}.md`);
    expect(page).toMatch(new RegExp(`^# ${title}$`, 'm'));
    const names = setupHint.match(NAME) ?? [];
    expect(names).toContainEqual(expect.stringMatching(/user_?id$/i));
    expect(names.filter((field) => !page.includes(field))).toEqual([]);
  },
);

// @promise provider-sources
test.each(Object.values(providers))(
  'the page of $title separates what its documentation says, what was inferred and what nobody could verify',
  ({ name, title }) => {
    const [, table = ''] = textOf(`docs/providers/${name}.md`).split(/^## Sources$/m);
    const sources = [...table.matchAll(/^\| (?!Statement \|).+ \| (.+) \|$/gm)].map(([, source]) => source);
    const kinds = sources.map(
      (source) => /^\*\*(Inferred|Unverified)\*\*/.exec(source ?? '')?.[1] ?? 'documented',
    );
    expect(new Set(kinds)).toEqual(new Set(['documented', 'Inferred', 'Unverified']));
    expect(sources.some((source) => source?.startsWith(title))).toBe(true);
  },
);

test('every test that docs/provider-conformance.md names exists', () => {
  const named = namedTestsIn(textOf('docs/provider-conformance.md'));
  expect(named.length).toBeGreaterThan(150);
  const missing = named.filter(([file, words]) => !textOf(file).includes(words));
  expect(missing).toEqual([]);
});
