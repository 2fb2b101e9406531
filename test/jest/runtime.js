import { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';

const load = createRequire(import.meta.url);
const { default: IsolatedRuntime } = load('jest-runtime');

/** Where Jest keeps the functions that receive the events of a test file. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

/** Loads modules with Node, once per worker. */
class SharedRuntime {
  /** Loads the part of Jest that collects the tests of a file, anew for each file. */
  requireInternalModule(file) {
    delete load.cache[file];
    delete globalThis[EVENT_HANDLERS];
    return load(file);
  }

  requireModule(file) {
    return load(file);
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule(file) {
    await import(pathToFileURL(file).href);
  }

  getSourceMaps() {
    return new Map();
  }

  // Jest calls these too. They have nothing to do here.
  setGlobalsForRuntime() {}
  enterTestCode() {}
  leaveTestCode() {}
  getAllCoverageInfoCopy() {}
  teardown() {}
}

let isRegistered = false;

/**
 * The runtime of a test file, for Jest. Jest's own runtime loads every module anew for each file, in a context of `node:vm`: seconds
 * for a file that starts the service, and its code is compiled and optimized anew. In the shared environment (`environment.js`) all
 * files of a worker share their modules and the globals of the process, as the parts of the service do.
 */
export default function Runtime(config, environment, ...rest) {
  if (environment.getVmContext() !== null) return new IsolatedRuntime(config, environment, ...rest);
  if (!isRegistered) {
    register('./load.js', import.meta.url);
    process.setSourceMapsEnabled(true);
    isRegistered = true;
  }
  return new SharedRuntime();
}
