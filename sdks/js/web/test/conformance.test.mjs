import { after, before, test } from 'node:test';
import { isPlayable, play, readScenarios } from '../../../conformance/play.mjs';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';
import { ABILITIES, createDriver, openPage, PAGE } from './driver.mjs';

let server;
let site;
let browser;
let page;
before(async () => {
  [server, site, browser] = await Promise.all([startServer(), startSite(() => PAGE), startBrowser()]);
  page = await openPage(browser, server);
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});

for (const scenario of readScenarios().filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(scenario.name, async () => {
    await play(scenario, { server, driver: createDriver(page, site) });
  });
}
