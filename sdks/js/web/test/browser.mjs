// A real Chromium, and a web server for pages on another origin than the API.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';

const FILES = {
  '/dist/': new URL('../dist/', import.meta.url),
  '/test/': new URL('./', import.meta.url),
  '/conformance/': new URL('../../../conformance/', import.meta.url),
};
const TYPES = { js: 'text/javascript', mjs: 'text/javascript', html: 'text/html', json: 'application/json' };

/** Serves the built SDK, the test's own files, and one page for every other path. `page(url)` returns its text. */
export async function startSite(page, headers = () => ({})) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://site');
    const [prefix, folder] = Object.entries(FILES).find(([name]) => url.pathname.startsWith(name)) ?? [];
    if (prefix === undefined) {
      response.writeHead(200, { 'content-type': 'text/html', ...headers(url) }).end(page(url));
      return;
    }
    const name = url.pathname.slice(prefix.length);
    const content = await readFile(new URL(name, folder)).catch(() => undefined);
    const type = TYPES[name.split('.').at(-1)] ?? 'text/plain';
    response
      .writeHead(content === undefined ? 404 : 200, {
        'content-type': type,
        'access-control-allow-origin': '*',
      })
      .end(content);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Starts the Chromium of the system. */
export async function startBrowser() {
  return await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-quic', '--disable-background-networking'],
  });
}
