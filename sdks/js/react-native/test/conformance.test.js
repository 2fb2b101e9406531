import { ABILITIES, createDriver } from './driver.js';

const { isPlayable, play, readScenarios, startServer } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');

let server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

for (const scenario of readScenarios().filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(scenario.name, async () => {
    await play(scenario, { server, driver: createDriver() });
  });
}
