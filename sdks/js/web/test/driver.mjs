// Connects the scenarios to the Web SDK in a page of a real browser.
import { START } from '../../../conformance/play.mjs';

/** What the Web SDK can do beyond the rules for every SDK. */
export const ABILITIES = [
  'start',
  'online',
  'foreground',
  'deferredOffByDefault',
  'app',
  'debugState',
  'otherOptions',
];

/** The page that loads the harness and the SDK. */
export const PAGE = '<!doctype html><script type="module" src="/test/harness.mjs"></script>';

/** Opens the page in which the scenarios of a file are played one after the other. A page of its own for each takes most of the time. */
export async function openPage(browser, server) {
  const page = await browser.newPage();
  await page.exposeFunction('heldRequests', () => server.state().held);
  return page;
}

/** Returns a driver of the SDK in a page, which forgets what earlier scenarios stored. */
export function createDriver(page, site) {
  let options;
  let isLoaded;

  const inPage = async (name, ...given) =>
    await page.evaluate(([method, values]) => window.harness[method](...values), [name, given]);

  /** Opens the address of a shop on the test's own origin, without leaving a page that is open already. */
  const open = async (address = 'https://shop.test/') => {
    const { pathname, search, hash } = new URL(address);
    const url = `${site.url}${pathname}${search}${hash}`;
    if (isLoaded) return await page.evaluate((to) => history.replaceState(null, '', to), url);
    await page.goto(url);
    await page.waitForFunction(() => window.isReady);
    isLoaded = true;
  };

  return {
    begin: async ({ host, options: given, store, storage }) => {
      const { random = 0, ...rest } = given;
      options = { apiKey: 'pk_live_test', apiBaseUrl: host, ...rest };
      isLoaded = false;
      await page.goto(`${site.url}/conformance/answers.json`);
      await page.context().clearCookies();
      await page.evaluate(
        ([text, settings]) => {
          localStorage.clear();
          sessionStorage.clear();
          if (text !== null) localStorage.setItem('tributary', text);
          sessionStorage.setItem('harness', JSON.stringify(settings));
        },
        [store, { now: START, ids: 0, random, storage }],
      );
    },
    start: async (url) => {
      await open(url ?? undefined);
      return await inPage('start', options);
    },
    call: async (name, ...given) => {
      if (!isLoaded) await open();
      return await inPage('call', name, ...given);
    },
    advance: (ms) => inPage('advance', ms),
    clock: async (ms) => {
      if (!isLoaded) await open();
      await inPage('shift', ms);
    },
    restart: (other) => {
      options = { ...options, ...other };
      isLoaded = false;
    },
    storage: async (mode) => {
      if (!isLoaded) await open();
      await inPage('setStorage', mode);
    },
    event: (name) =>
      page.evaluate(
        (online) =>
          online ? dispatchEvent(new Event('online')) : document.dispatchEvent(new Event('visibilitychange')),
        name === 'online',
      ),
    stored: async () => {
      if (!isLoaded) await open();
      return await inPage('stored', options.app);
    },
    warnings: () => inPage('warnings'),
    settled: async () => {
      if (isLoaded) await inPage('settled');
    },
    // Nothing of this scenario asks the server of the next one.
    end: () => page.goto('about:blank'),
  };
}
