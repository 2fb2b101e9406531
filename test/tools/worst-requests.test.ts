import { expect, test } from '@jest/globals';
import { routes } from '../../src/http/routes.ts';
import { WORST_CASES } from '../../tools/bench/requests-without-key.ts';

test('the benchmark of the worst requests has one for every route without an account key', () => {
  const measured = new Set(WORST_CASES.map(({ route }) => route));
  const open = routes
    .filter(({ auth }) => auth === 'none' || auth === 'sdk' || auth === 'provider')
    .map(({ method, path }) => `${method} ${path}`);
  expect(open).toContain('POST /clicks');
  expect(open.filter((route) => !measured.has(route))).toEqual([]);
});
