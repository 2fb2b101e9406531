import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';

/*
 * `node site/check.mjs [FOLDER]`: follows all links between pages of the built site, and opens some pages in Chromium, wide and
 * narrow, light and dark. Fails on a link to a page or a heading that does not exist, on an error of a page, on a page that scrolls
 * sideways, on a search that finds nothing, and on a request that leaves this machine. With a folder, it writes a screenshot of each
 * opened page there.
 */

const [folder] = process.argv.slice(2);
const dist = path.join(import.meta.dirname, 'dist');
const PAGES = [
  '',
  'start.html',
  'concepts.html',
  'api/affiliates.html',
  'founders.html',
  'operators.html',
  'conformance.html',
];
const WIDTHS = [1280, 390];
const SCHEMES = ['light', 'dark'];
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
  const file = path.join(dist, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
  if (!file.startsWith(dist) || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
  createReadStream(file).pipe(response);
});
await new Promise((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const origin = `http://127.0.0.1:${server.address().port}`;

const problems = [];

/** The ids of each page, by its address. */
const idsOf = new Map();
const linksOf = new Map();
for (const name of readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.html'))) {
  const html = readFileSync(path.join(dist, name), 'utf8');
  const address = `/${name.replaceAll(path.sep, '/')}`;
  idsOf.set(address, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)));
  linksOf.set(
    address,
    [...html.matchAll(/ href="([^"]+)"/g)].map(([, href]) => href),
  );
}
for (const [address, links] of linksOf) {
  for (const link of new Set(links)) {
    const { origin: target, pathname, hash } = new URL(link.replaceAll('&amp;', '&'), `${origin}${address}`);
    if (target !== origin || !/(\/|\.html)$/.test(pathname)) continue;
    const ids = idsOf.get(pathname.replace(/\/$/, '/index.html'));
    const id = decodeURIComponent(hash.slice(1));
    if (ids === undefined || (id !== '' && !ids.has(id))) problems.push(`${address} links to ${link}`);
  }
}
const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? CHROMIUM.find((file) => existsSync(file)),
  args: ['--no-sandbox', '--disable-background-networking'],
});
if (folder !== undefined) await mkdir(folder, { recursive: true });

/** Opens a page in a window of its own, and notes what must not happen in it. */
async function open(address, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  // A slow machine is no problem of the site.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const where = `/${address} at ${width} px, ${colorScheme}`;
  const note = (text) => problems.push(`${where}: ${text}`);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) note(message.text());
  });
  page.on('pageerror', (error) => note(error.message));
  page.on('response', (response) => {
    if (response.status() >= 400) note(`${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (target !== origin && !['data:', 'blob:'].includes(protocol)) note(`asks for ${request.url()}`);
  });
  await page.goto(`${origin}/${address}`, { waitUntil: 'networkidle' });
  return { page, note, close: async () => await context.close() };
}

async function shoot(page, name) {
  if (folder !== undefined) await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

for (const width of WIDTHS) {
  for (const scheme of SCHEMES) {
    for (const address of PAGES) {
      const { page, note, close } = await open(address, width, scheme);
      const { wide, has } = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth,
        has: document.documentElement.clientWidth,
      }));
      if (wide > has) note(`is ${wide} px wide and scrolls sideways`);
      const name = address === '' ? 'home' : address.replace('.html', '').replaceAll('/', '-');
      await shoot(page, `${name}-${width}-${scheme}`);
      await close();
    }
    const { page, note, close } = await open('start.html', width, scheme);
    await page.locator('.DocSearch-Button').click();
    await page.locator('.VPLocalSearchBox .search-input').fill('payout');
    const results = page.locator('.VPLocalSearchBox .results .result');
    await results
      .first()
      .waitFor({ timeout: 60_000 })
      .catch(() => note('the search finds no payout'));
    await shoot(page, `search-${width}-${scheme}`);
    await close();
  }
}
await browser.close();
server.close();
for (const problem of problems) console.error(problem);
console.log(
  `${PAGES.length} pages and the search at ${WIDTHS.join(' and ')} px in ${SCHEMES.join(' and ')}: ${problems.length} problems`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
