import { readFileSync, statSync } from 'node:fs';

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
/** The files that take minutes with the many rounds of `npm run test:long`. */
const LONG = process.env.TEST_ROUNDS === 'long' ? scripts['test:long'].match(/test\/\S+/g) : [];

/** Files that wait for servers, processes or a large database, the slowest first. The size of a file says little about them. */
const SLOW = [/\/operation\/(query-plans|migrate)\./, /\/e2e\/|\/operation\/|\/temporal\/|\/embedded\//];

const rankOf = (file) => {
  if (LONG.some((part) => file.includes(part))) return -1;
  const index = SLOW.findIndex((pattern) => pattern.test(file));
  return index === -1 ? SLOW.length : index;
};

/** The order of the test files, the same with and without Jest's cache: long ones first, so that none is left over at the end. */
export default class Sequencer {
  sort(tests) {
    const size = new Map(tests.map(({ path }) => [path, statSync(path).size]));
    return tests.toSorted((a, b) => rankOf(a.path) - rankOf(b.path) || size.get(b.path) - size.get(a.path));
  }

  // Jest calls these too.
  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {}
}
