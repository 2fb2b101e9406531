// React Native's own environment, with the conformance kit, which is written in ES modules and runs outside of it.
const ReactNativeEnvironment = require('react-native/jest/react-native-env.js');

const CONFORMANCE = '../../../conformance';

module.exports = class extends ReactNativeEnvironment {
  async setup() {
    await super.setup();
    this.timers = new Set();
    this.global.setTimeout = (...given) => {
      const timer = setTimeout(...given);
      this.timers.add(timer);
      return timer;
    };
    const modules = ['play', 'server', 'stories', 'wire-server', 'fake-clock', 'service'];
    const loaded = await Promise.all(modules.map((name) => import(`${CONFORMANCE}/${name}.mjs`)));
    this.global.kit = { ...Object.assign({}, ...loaded), fetch, setTimeout, clearTimeout };
  }

  // An app that is never closed tries again after up to ten minutes, for which the process would wait.
  async teardown() {
    this.timers.forEach((timer) => clearTimeout(timer));
    await super.teardown();
  }
};
