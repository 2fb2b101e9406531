import { expect, test } from '@jest/globals';
import { routes } from '../../src/http/routes.ts';
import { ENDPOINTS, PROMISE_IDS } from '../promises/index.ts';
import { readTaggedTests } from '../support/tagged-tests.ts';

const { tests, misplaced } = readTaggedTests();
const tagged = new Set(tests.flatMap(({ promises }) => promises));

test('every promise has a unique id and at least one test with its tag', () => {
  expect(PROMISE_IDS.length).toBeGreaterThan(400);
  expect(PROMISE_IDS.filter((id, index) => PROMISE_IDS.indexOf(id) !== index)).toEqual([]);
  expect(PROMISE_IDS.filter((id) => !tagged.has(id))).toEqual([]);
});

test('every tag names a known promise', () => {
  const unknown = tests.flatMap(({ file, title, promises }) =>
    promises.filter((id) => !PROMISE_IDS.includes(id)).map((id) => `${file} "${title}": ${id}`),
  );
  expect(unknown).toEqual([]);
});

test('every tag is directly above a test or a group of tests', () => {
  expect(misplaced).toEqual([]);
});

// @promise permission-per-route, paths-unversioned, specified-paths
test('the promised endpoints are those of the table of routes, each with its caller and permission', () => {
  const promised = ENDPOINTS.map(({ route, caller }) => `${route}: ${caller}`);
  const actual = routes.map(
    ({ method, path: at, auth, permission }) =>
      `${method} ${at}: ${auth}${permission === null ? '' : ` ${permission}`}`,
  );
  expect(promised.toSorted()).toEqual(actual.toSorted());
});
