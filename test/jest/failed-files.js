import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LIST = fileURLToPath(new URL('../../dist/failed-tests.txt', import.meta.url));

/** Writes the test files that failed to `dist/failed-tests.txt`, one a line, for `.ci/test`. */
export default class FailedFiles {
  onRunComplete(_, { testResults }) {
    const failed = testResults.filter(
      ({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError,
    );
    mkdirSync(new URL('../../dist/', import.meta.url), { recursive: true });
    writeFileSync(LIST, failed.map(({ testFilePath }) => `${testFilePath}\n`).join(''));
  }
}
