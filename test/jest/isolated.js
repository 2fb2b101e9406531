import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * The environment of a test file that needs modules of its own, or the `jest` object: it begins with the comment
 * `@jest-environment <rootDir>/test/jest/isolated.js`. In mutation tests it counts which code each test runs.
 */
export default process.env['STRYKER_MUTATOR_WORKER'] === undefined
  ? load('jest-environment-node').default
  : load('@stryker-mutator/jest-runner/jest-env/node');
