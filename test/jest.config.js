/** How the tests and what they import are compiled. */
export const swcOptions = {
  jsc: { target: 'es2023', parser: { syntax: 'typescript' } },
  module: { type: 'es6' },
  swcrc: false,
};

export default {
  rootDir: '..',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  runtime: '<rootDir>/test/jest/runtime.js',
  testEnvironment: '<rootDir>/test/jest/environment.js',
  testSequencer: '<rootDir>/test/jest/sequencer.js',
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Three times what the longest test takes on two slow processors. What hangs is rare, and a slow machine breaks no promise.
  testTimeout: 90_000,
  maxWorkers: 2,
  transform: { '^.+\\.ts$': ['@swc/jest', swcOptions] },
};
