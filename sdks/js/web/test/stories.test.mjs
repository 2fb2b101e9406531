import { after, before, test } from 'node:test';
import { isPlayable } from '../../../conformance/play.mjs';
import { playStory, STORIES } from '../../../conformance/stories.mjs';
import { startWireServer } from '../../../conformance/wire-server.mjs';
import { startBrowser, startSite } from './browser.mjs';
import { ABILITIES, createDriver, openPage, PAGE } from './driver.mjs';

let server;
let site;
let browser;
let page;
before(async () => {
  [server, site, browser] = await Promise.all([startWireServer(), startSite(() => PAGE), startBrowser()]);
  page = await openPage(browser, server);
});
after(async () => {
  await browser?.close();
  site?.close();
  await server?.close();
});

for (const story of STORIES.filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(story.name, async () => {
    await playStory(story, { server, driver: createDriver(page, site) });
  });
}
