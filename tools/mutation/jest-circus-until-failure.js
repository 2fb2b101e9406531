import { createRequire } from 'node:module';

const { default: circus } = createRequire(import.meta.url)('jest-circus/runner');
/** Where Stryker says which mutant is tried. */
const MUTANT = '__STRYKER_ACTIVE_MUTANT__';

let noticed = { mutant: undefined, result: undefined };

/**
 * Runs a test file as jest does, unless an earlier file has noticed the mutant that is being tried: the mutant is caught
 * then, and the file counts as one test that was left out. Stryker has no such stop of its own for jest. Without a
 * mutant nothing is ever left out.
 */
export default async function runUntilFailure(globalConfig, config, environment, runtime, path, ...rest) {
  const mutant = process.env[MUTANT];
  if (mutant !== undefined && mutant === noticed.mutant) {
    const { result } = noticed;
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
  if (result.numFailingTests > 0) noticed = { mutant, result };
  return result;
}
