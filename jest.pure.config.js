import config from './jest.config.js';

/** The tests that need neither Postgres nor Temporal: what mutated code is tried against, thousands of times. */
export default {
  ...config,
  roots: ['<rootDir>/test/domain', '<rootDir>/test/providers', '<rootDir>/test/rates'],
  globalSetup: undefined,
  globalTeardown: undefined,
  testRunner: '<rootDir>/test/support/jest-circus-until-failure.js',
  setupFilesAfterEnv: ['<rootDir>/test/support/no-shrinking.ts'],
};
