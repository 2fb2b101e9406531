import { createRequire } from 'node:module';

const { default: circus } = createRequire(import.meta.url)('jest-circus/runner');
/** The environment variable in which Stryker sets the active mutant. */
const MUTANT = '__STRYKER_ACTIVE_MUTANT__';

let killed = { mutant: undefined, result: undefined };

/**
 * Runs a test file as jest does, unless an earlier file has already killed the active mutant: then it reports the file as
 * one skipped test. Stryker can't stop jest at the first failed file. Without a mutant it runs every file.
 */
export default async function runUntilFailure(globalConfig, config, environment, runtime, path, ...rest) {
  const mutant = process.env[MUTANT];
  if (mutant !== undefined && mutant === killed.mutant) {
    const { result } = killed;
    return {
      ...result,
      testFilePath: path,
      numFailingTests: 0,
      numPassingTests: 0,
      numPendingTests: 1,
      failureMessage: null,
      testResults: [{ ...result.testResults[0], status: 'pending', failureMessages: [], failureDetails: [] }],
    };
  }
  const result = await circus(globalConfig, config, environment, runtime, path, ...rest);
  if (result.numFailingTests > 0) killed = { mutant, result };
  return result;
}
