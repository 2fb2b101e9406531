import { after, before, test } from 'node:test';
import { isPlayable, play, readScenarios } from '../../../conformance/play.mjs';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';
import { ABILITIES, createDriver, PAGE } from './driver.mjs';

let server;
let site;
let browser;
before(async () => {
  [server, site, browser] = await Promise.all([startServer(), startSite(() => PAGE), startBrowser()]);
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});

for (const scenario of readScenarios().filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(scenario.name, async () => {
    await play(scenario, { server, driver: await createDriver(browser, site, server) });
  });
}
