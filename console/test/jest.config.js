import base from '../../test/jest.config.js';

/** The tests of the console in a real browser: `npm run test:console`. */
export default {
  ...base,
  rootDir: '../..',
  roots: ['<rootDir>/console/test'],
  runtime: undefined,
  testEnvironment: 'node',
  testTimeout: 90_000,
  maxWorkers: 1,
};
