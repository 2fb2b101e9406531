import { ABILITIES, createDriver } from './driver.js';

const { isPlayable, playStory, startWireServer, STORIES } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');

let server;
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(() => server.close());

for (const story of STORIES.filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(story.name, async () => {
    await playStory(story, { server, driver: createDriver() });
  });
}
