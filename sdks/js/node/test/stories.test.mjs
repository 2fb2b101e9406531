import { after, before, test } from 'node:test';
import { isPlayable } from '../../../conformance/play.mjs';
import { playStory, STORIES } from '../../../conformance/stories.mjs';
import { startWireServer } from '../../../conformance/wire-server.mjs';
import { createTributary } from '../dist/index.js';
import { ABILITIES, createDriver } from './driver.mjs';

let server;
before(async () => {
  server = await startWireServer();
});
after(() => server.close());

for (const story of STORIES.filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(story.name, async () => {
    await playStory(story, { server, driver: createDriver(createTributary) });
  });
}
