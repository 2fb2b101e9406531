/**
 * The environment of a test file: the globals of the process. `runtime.js` states why. A file that needs modules of its own, or the
 * `jest` object, begins with the comment `@jest-environment <rootDir>/test/jest/isolated.js`.
 */
export default class SharedEnvironment {
  global = globalThis;
  #console = console;
  // oxlint-disable-next-line typescript/unbound-method -- it is put back and never called here
  #exit = process.exit;

  /** Returns null: there is no context of `node:vm`. */
  getVmContext() {
    return null;
  }

  async setup() {
    // Jest has just installed a function that maps stack traces. Node maps them itself.
    Error.prepareStackTrace = undefined;
  }

  /** Removes what Jest has replaced for this file, and what it keeps of its tests. */
  async teardown() {
    process.exit = this.#exit;
    globalThis.console = this.#console;
    for (const key of Object.getOwnPropertySymbols(globalThis)) {
      if (key.description === 'JEST_STATE_SYMBOL') delete globalThis[key];
    }
  }
}
