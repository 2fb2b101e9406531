import { project, reporters } from '../../test/jest.config.js';

/** The tests of the console in a real browser: `npm run test:console`. */
export default {
  ...project,
  roots: ['<rootDir>/console/test'],
  // In CI the tests of the SDKs run beside these, and take a third of the processors.
  testTimeout: 150_000,
  maxWorkers: 2,
  reporters,
  testMatch: ['**/*.test.ts'],
  testSequencer: '<rootDir>/test/jest/sequencer.js',
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
};
