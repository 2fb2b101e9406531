import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { textOf } from '../support/text-of.ts';

const { include: topLevel } = JSON.parse(textOf('tsconfig.json')) as { include: readonly string[] };
const inSrc = readdirSync(path.join(projectRoot, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/${name}`);
const folders = [...topLevel.filter((name) => name !== 'src'), ...inSrc];

test('docs/architecture.md describes every folder of code and states what it may import', () => {
  const page = textOf('docs/architecture.md');
  expect(folders.filter((folder) => !page.includes(`\n| \`${folder}\` |`))).toEqual([]);
  const arrows = page
    .split('\n')
    .filter((line) => line.includes('──►'))
    .flatMap((line) => line.split('──►')[0]?.trim().split(', '));
  expect(folders.filter((folder) => !arrows.includes(folder))).toEqual([]);
});

test('the linter has import rules for every folder of the service', () => {
  const { overrides } = JSON.parse(textOf('.oxlintrc.json')) as {
    overrides: readonly { files: readonly string[]; rules: Readonly<Record<string, unknown>> }[];
  };
  const ruled = overrides
    .filter(({ rules }) => 'no-restricted-imports' in rules)
    .flatMap(({ files }) => files);
  const unruled = folders.filter((folder) => !ruled.some((pattern) => pattern.startsWith(`${folder}/`)));
  expect(unruled.filter((folder) => !['tools', 'test'].includes(folder))).toEqual([]);
});

test.each(['docs/architecture.md', 'docs/temporal.md'])(
  'every file and folder that %s names exists',
  (page) => {
    const named = [...textOf(page).matchAll(/`([\w.-]+\/[\w./-]+)`/g)]
      .map(([, name]) => name ?? '')
      .filter((name) => [...topLevel, 'docs'].includes(name.split('/')[0] ?? ''))
      // Words in capitals stand for a name to choose.
      .filter((name) => !/[A-Z]{2}/.test(name));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !existsSync(path.join(projectRoot, name)))).toEqual([]);
  },
);
