import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { textOf } from '../support/text-of.ts';

/** The files of released schemas with their SHA-256. A file is added here when a release contains it, and never changed. */
const FROZEN: Readonly<Record<string, string>> = {
  '0001_tracking.sql': 'bbf661a06a3d9ea89dc9766194eeb824919d23fe28129721df007c4861e781cc',
  '0002_billing.sql': '216ffec9478b318a14754c6043aa9c0ac094b0355f65ef1b7961b8cce10a40e2',
  '0003_ledger.sql': 'db6f4bb40279b79dde1f68b365caa2879221af3fed80f0cf8e24b5e396990e56',
  '0004_rollups.sql': 'eafbe61e40c36f28194ae42db83ec858de7d3e15bd0f48ab9d773ba63fc35068',
};

// @promise migrations-frozen
test.each(Object.entries(FROZEN))('the migration %s of a release is unchanged', (name, sha256) => {
  const text = textOf(`src/db/migrations/${name}`);
  expect(createHash('sha256').update(text).digest('hex')).toBe(sha256);
});

// @promise migrations-frozen
test('no two migrations have the same number, so that their order is the one of their numbers', () => {
  const numbers = readdirSync(path.join(projectRoot, 'src/db/migrations')).map((name) => name.slice(0, 4));
  expect(numbers.filter((number, n) => numbers.indexOf(number) !== n)).toEqual([]);
});
