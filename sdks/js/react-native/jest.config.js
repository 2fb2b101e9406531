// Every test runs with the native modules of iOS and with those of Android.
const project = (platform) => ({
  preset: 'react-native',
  displayName: platform,
  haste: { defaultPlatform: platform, platforms: ['android', 'ios', 'native'] },
  testEnvironment: './test/environment.js',
  testMatch: ['**/test/*.test.js'],
  // The example, which is outside of this folder, finds the packages of this one, and not another React above it.
  modulePaths: ['<rootDir>/node_modules'],
  moduleNameMapper: {
    '^@tributary/react-native$': '<rootDir>/dist/index.js',
    '^react(/.*)?$': '<rootDir>/node_modules/react$1',
  },
  transform: { '\\.(js|tsx?)$': ['babel-jest', { presets: ['module:@react-native/babel-preset'] }] },
});

module.exports = {
  projects: [project('ios'), project('android')],
  // The first test of a file compiles React Native. One that ran out of time would go on beside the next one.
  testTimeout: 60_000,
};
