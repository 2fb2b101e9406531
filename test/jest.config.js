import { fileURLToPath } from 'node:url';

/** How the tests and what they import are compiled. */
export const swcOptions = {
  jsc: { target: 'es2023', parser: { syntax: 'typescript' } },
  module: { type: 'es6' },
  swcrc: false,
};

/** What all kinds of tests have in common. */
export const project = {
  rootDir: fileURLToPath(new URL('..', import.meta.url)),
  roots: ['<rootDir>/test'],
  extensionsToTreatAsEsm: ['.ts'],
  runtime: '<rootDir>/test/jest/runtime.js',
  testEnvironment: '<rootDir>/test/jest/environment.js',
  transform: { '^.+\\.ts$': ['@swc/jest', swcOptions] },
};

/** What prints the results, and keeps which files failed. */
export const reporters = ['default', fileURLToPath(new URL('jest/failed-files.js', import.meta.url))];

/** The folders whose tests need no database, no Temporal server and no build. */
const UNIT_FOLDERS = ['domain', 'lib', 'mail', 'providers', 'rates', 'reconcile', 'webhooks-out'];

/**
 * The folders whose tests start, kill and stop processes and servers, upgrade and move installations, fill a large database or overload a
 * process. `npm test` leaves them out.
 */
const OPERATION_FOLDERS = ['embedded', 'operation'];

const filesOf = (folders) => folders.map((folder) => `<rootDir>/test/${folder}/**/*.test.ts`);

const withServers = {
  ...project,
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
};

export default {
  rootDir: project.rootDir,
  // What the projects have, for knip.
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testSequencer: '<rootDir>/test/jest/sequencer.js',
  // Three times what the longest test takes on two slow processors. What hangs is rare, and a slow machine breaks no promise.
  testTimeout: 90_000,
  // Of three, one usually waits for a server: two processors are busy then. With the many rounds of CI, two are busy by themselves.
  maxWorkers: process.env.TEST_ROUNDS === 'long' ? 2 : 3,
  reporters,
  projects: [
    { ...project, displayName: 'unit', testMatch: filesOf(UNIT_FOLDERS) },
    {
      ...withServers,
      displayName: 'integration',
      testMatch: ['**/*.test.ts'],
      testPathIgnorePatterns: [`<rootDir>/test/(${[...UNIT_FOLDERS, ...OPERATION_FOLDERS].join('|')})/`],
    },
    { ...withServers, displayName: 'operation', testMatch: filesOf(OPERATION_FOLDERS) },
  ],
};
