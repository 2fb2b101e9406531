import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { routes } from '../../src/http/routes/index.ts';
import { tableRowsOf, textOf, titlesIn } from '../support/named-tests.ts';
import type { PageRow } from '../support/named-tests.ts';

const rows = tableRowsOf(textOf('docs/conformance.md'));

const sentence = ({ section, cells }: PageRow) => `${section}: ${cells[0]}`;

test('every promise names a test', () => {
  expect(rows.length).toBeGreaterThan(200);
  expect(rows.filter(({ tests }) => tests.length === 0).map(sentence)).toEqual([]);
});

test('every test that is named is there, under that very title', () => {
  const titles = new Map<string, ReadonlySet<string>>();
  const missing: string[] = [];
  for (const row of rows) {
    for (const file of row.files) {
      if (titles.has(file)) continue;
      titles.set(file, existsSync(path.join(projectRoot, file)) ? titlesIn(file) : new Set());
    }
    for (const [file, title] of row.tests) {
      if (titles.get(file)?.has(title) !== true) missing.push(`${sentence(row)}: ${file} "${title}"`);
    }
  }
  expect(missing).toEqual([]);
});

test('the endpoints are those of the table of routes, each with who may call it', () => {
  const promised = rows
    .filter(({ section }) => section.endsWith('Endpoints'))
    .map(({ cells: [route, caller] }) => `${route?.replaceAll('`', '')}: ${caller}`);
  const there = routes.map(
    ({ method, path: at, auth, permission }) =>
      `${method} ${at}: ${auth}${permission === null ? '' : ` ${permission}`}`,
  );
  expect([...new Set(promised)].toSorted()).toEqual(there.toSorted());
});
