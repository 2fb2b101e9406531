import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Koa from 'koa';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpState } from '../../src/http/context.ts';
import { serveConsole } from '../../src/http/console-files.ts';
import { problem } from '../../src/http/middleware/problem.ts';
import { requestId } from '../../src/http/middleware/request-id.ts';
import { pino } from 'pino';

const SCRIPT = 'console.log(1);';
const PAGE = '<base href="__BASE__"><meta property="csp-nonce" nonce="__NONCE__">';

let folder: string;
let server: Server;
let url: string;

async function serve(from: string): Promise<{ server: Server; url: string }> {
  const app = new Koa<HttpState>();
  app.use(requestId);
  app.use(problem(pino({ level: 'silent' })));
  app.use(serveConsole(() => {}, from));
  app.use(async (ctx) => {
    ctx.body = 'not the console';
  });
  const listening = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    listening.once('listening', resolve);
  });
  return { server: listening, url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}` };
}

const get = async (at: string, headers: Readonly<Record<string, string>> = {}) =>
  await fetch(url + at, { redirect: 'manual', headers });

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-console-'));
  await mkdir(path.join(folder, 'assets'));
  await writeFile(path.join(folder, 'index.html'), PAGE);
  await writeFile(path.join(folder, 'creator.html'), `${PAGE}creator`);
  await writeFile(path.join(folder, 'operator.html'), `${PAGE}operator`);
  await writeFile(path.join(folder, 'assets/index-1.js'), SCRIPT);
  await writeFile(path.join(folder, 'assets/index-1.js.gz'), gzipSync(SCRIPT));
  await writeFile(path.join(folder, 'assets/index-1.js.br'), brotliCompressSync(SCRIPT));
  await writeFile(path.join(folder, 'secret.txt'), 'secret');
  ({ server, url } = await serve(folder));
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await rm(folder, { recursive: true });
});

describe('the pages of the console', () => {
  // @promise console-page
  test.each([
    ['/console/', './'],
    ['/console/access', './'],
    ['/console/apps/app_1/setup', '../../'],
    ['/console/apps/app_1/', '../../'],
  ])('%s is the page, whose base is %s, so that it works behind the prefix of a proxy', async (at, base) => {
    const response = await get(at);
    expect(response.status).toBe(200);
    expect(new URL(base, `https://x.example/prefix${at}`).href).toBe('https://x.example/prefix/console/');
    expect(await response.text()).toContain(`<base href="${base}">`);
    expect(response.headers.get('cache-control')).toBe('no-cache');
  });

  // @promise console-page
  test.each([
    ['/console/creator', './', 'creator'],
    ['/console/creator/', '../', 'creator'],
    ['/console/creator/payouts/pay_1', '../../', 'creator'],
    ['/console/creator/as/app_1/aff_1/links', '../../../../', 'creator'],
    ['/console/operator/', '../', 'operator'],
    ['/console/creators', './', 'founder'],
    ['/console/operators', './', 'founder'],
  ])('%s has the base %s and is the page of the %s', async (at, base, whose) => {
    const text = await (await get(at)).text();
    const [, found = 'founder'] = /(creator|operator)$/.exec(text) ?? [];
    expect([text.includes(`<base href="${base}">`), found]).toEqual([true, whose]);
  });

  // @promise console-policy
  test('the page allows nothing of other hosts, and only styles with its nonce, which is new each time', async () => {
    const nonces = [];
    for (let nth = 0; nth < 2; nth += 1) {
      const response = await get('/console/');
      const policy = response.headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|https?:/);
      expect(response.headers.get('referrer-policy')).toBe('no-referrer');
      expect(response.headers.get('cross-origin-opener-policy')).toBe('same-origin');
      const nonce = /nonce-([\w-]+)/.exec(policy)?.[1] ?? '';
      expect(await response.text()).toContain(`nonce="${nonce}"`);
      nonces.push(nonce);
    }
    expect(nonces[0]).not.toBe(nonces[1]);
  });

  // @promise console-page
  test('/console leads to the page by a relative address', async () => {
    const { status, headers } = await get('/console');
    expect({ status, location: headers.get('location') }).toEqual({ status: 302, location: 'console/' });
    expect(await (await get('/consoles')).text()).toBe('not the console');
    const posted = await fetch(`${url}/console/`, { method: 'POST' });
    expect(await posted.text()).toBe('not the console');
  });

  // @promise console-page
  test('a hashed file is kept for ever and sent compressed to those who accept it', async () => {
    const headers = { 'accept-encoding': 'gzip' };
    const response = await get('/console/assets/index-1.js', headers);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(response.headers.get('vary')).toBe('Accept-Encoding');
    expect(await response.text()).toBe(SCRIPT);
    const plain = await get('/console/assets/index-1.js', { 'accept-encoding': 'identity' });
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, SCRIPT]);
  });

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, br;q=0', 'gzip'],
    ['gzip;q=0, *', 'br'],
    ['deflate', 'identity'],
  ])('a browser that accepts %s gets a hashed file and a page as %s', async (accepted, encoding) => {
    const response = await get('/console/assets/index-1.js', { 'accept-encoding': accepted });
    expect(response.headers.get('content-encoding') ?? 'identity').toBe(encoding);
    expect(await response.text()).toBe(SCRIPT);
    const page = await get('/console/', { 'accept-encoding': accepted });
    expect(page.headers.get('content-encoding') ?? 'identity').toBe(encoding);
    expect(page.headers.get('vary')).toBe('Accept-Encoding');
    expect(await page.text()).toContain('<base href="./">');
  });

  test.each([
    ['/console/assets/missing.js'],
    ['/console/assets/..%2fsecret.txt'],
    ['/console/assets/index-1.js.gz'],
    ['/console/assets/__proto__'],
  ])('the file %s is not served', async (at) => {
    expect((await get(at)).status).toBe(404);
  });

  test('without built pages, a 404 says how to build them', async () => {
    const empty = await serve(path.join(folder, 'assets'));
    const response = await fetch(`${empty.url}/console/`);
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('npm run build')]);
    empty.server.close();
    empty.server.closeAllConnections();
  });
});
