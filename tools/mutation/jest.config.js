import { project } from '../../test/jest.config.js';

/** Runs the tests that need neither Postgres nor Temporal. Stryker runs them thousands of times. */
export default {
  ...project,
  testMatch: ['**/*.test.ts'],
  // src is a root so that jest finds the tests of a file that they import only through other files.
  roots: ['<rootDir>/src', '<rootDir>/test/domain', '<rootDir>/test/providers', '<rootDir>/test/rates'],
  // Stryker replaces the environment, and loads a mutated module anew for each test file.
  runtime: undefined,
  testEnvironment: 'node',
  testRunner: '<rootDir>/tools/mutation/jest-circus-until-failure.js',
  setupFilesAfterEnv: ['<rootDir>/tools/mutation/no-shrinking.ts'],
};
