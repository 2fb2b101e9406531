import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { BROKEN_RULES } from '../../tools/break-rules/rules.ts';

test('each rule that `npm run break-rules` breaks stands in its file, once', () => {
  const places = BROKEN_RULES.map(({ rule, file, code }) => ({
    rule,
    places: readFileSync(path.join(projectRoot, file), 'utf8').split(code).length - 1,
  }));
  expect(places.filter((one) => one.places !== 1)).toEqual([]);
});
