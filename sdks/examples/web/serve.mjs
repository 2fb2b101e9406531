// Serves the example page: TRIBUTARY_SDK_KEY=pk_live_… TRIBUTARY_API_BASE_URL=http://… node serve.mjs [PORT]
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const { TRIBUTARY_SDK_KEY: apiKey, TRIBUTARY_API_BASE_URL: apiBaseUrl } = process.env;
const dist = new URL('../../js/web/dist/', import.meta.url);
const page = new URL('index.html', import.meta.url);

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://site');
  if (pathname === '/settings.js') {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end(`const SETTINGS = ${JSON.stringify({ apiKey, apiBaseUrl })};`);
    return;
  }
  // The second file is loaded if the address of the page has `tributary_debug`.
  const isScript = ['/tributary.js', '/tributary-debug.js'].includes(pathname);
  response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
  response.end(await readFile(isScript ? new URL(pathname.slice(1), dist) : page));
});
server.listen(Number(process.argv[2] ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
