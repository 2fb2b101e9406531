import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { projectRoot } from '../config/project-root.ts';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/** Where `npm run build` puts the pages. */
const FOLDER = path.join(projectRoot, 'dist/console');

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** The encodings of what is sent, best first, each with the end of the name of a compressed copy. */
const ENCODINGS = { br: '.br', gzip: '.gz' } as const;

type Encoding = keyof typeof ENCODINGS;

/** Compress a page, which differs from one answer to the next by its nonce. A higher quality takes longer than it saves. */
const COMPRESS: Readonly<Record<Encoding, (page: string) => Buffer>> = {
  br: (page) => brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (page) => gzipSync(page),
};

interface Asset {
  readonly contentType: string;
  readonly plain: Buffer;
  /** Compressed copies by their encoding, best first. */
  readonly encoded: ReadonlyMap<Encoding, Buffer>;
}

/** The pages, by the first part of their paths under `/console/`. Every other path is of the founder's page. */
const PAGES = { '': 'index.html', creator: 'creator.html', operator: 'operator.html' } as const;

type PageName = keyof typeof PAGES;

interface ConsoleFiles {
  /** The pages, with places for the nonce and the base. */
  readonly pages: Readonly<Record<PageName, string>>;
  /** By name. */
  readonly assets: ReadonlyMap<string, Asset>;
}

/** Reads the built pages. Returns null if they were not built. */
function readFiles(folder: string): ConsoleFiles | null {
  const pageFile = (name: PageName) => path.join(folder, PAGES[name]);
  if (!(Object.keys(PAGES) as PageName[]).every((name) => existsSync(pageFile(name)))) return null;
  const assets = new Map<string, Asset>();
  for (const name of readdirSync(path.join(folder, 'assets'))) {
    const contentType = CONTENT_TYPES[path.extname(name)];
    if (contentType === undefined) continue;
    const read = (file: string) => readFileSync(path.join(folder, 'assets', file));
    const encoded = (Object.entries(ENCODINGS) as [Encoding, string][]).flatMap(([encoding, end]) =>
      existsSync(path.join(folder, 'assets', name + end)) ? [[encoding, read(name + end)] as const] : [],
    );
    assets.set(name, { contentType, plain: read(name), encoded: new Map(encoded) });
  }
  const readPage = (name: PageName) => readFileSync(pageFile(name), 'utf8');
  const all = { '': readPage(''), creator: readPage('creator'), operator: readPage('operator') };
  return { pages: all, assets };
}

const policy = (nonce: string) =>
  `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; ` +
  "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

/** Returns how a page under `/console/` reaches `/console/`, relatively, so that it also works behind a proxy's prefix. */
function baseOf(pathname: string): string {
  const depth = pathname.split('/').length - '/console/'.split('/').length;
  return depth === 0 ? './' : '../'.repeat(depth);
}

/** Chooses one of some encodings, best first, and says so in the response. Undefined if the caller accepts none. */
function chooseEncoding(ctx: HttpContext, encodings: Iterable<Encoding>): Encoding | undefined {
  // Asked one by one, because the order in which browsers list encodings is no preference: gzip comes first, br is smaller.
  const encoding = [...encodings].find((name) => ctx.acceptsEncodings(name) === name);
  ctx.set('Vary', 'Accept-Encoding');
  if (encoding !== undefined) ctx.set('Content-Encoding', encoding);
  return encoding;
}

function sendAsset(ctx: HttpContext, asset: Asset): void {
  const encoding = chooseEncoding(ctx, asset.encoded.keys());
  ctx.set({ 'Cache-Control': 'public, max-age=31536000, immutable', 'Content-Type': asset.contentType });
  ctx.body = (encoding === undefined ? undefined : asset.encoded.get(encoding)) ?? asset.plain;
}

function sendPage(ctx: HttpContext, { pages }: ConsoleFiles): void {
  const [, name] = /^\/console\/(creator|operator)(?:\/|$)/.exec(ctx.path) ?? [];
  const page = pages[(name ?? '') as PageName];
  const nonce = randomBytes(16).toString('base64url');
  ctx.set({
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': policy(nonce),
    'Referrer-Policy': 'no-referrer',
  });
  const text = page.replaceAll('__NONCE__', nonce).replaceAll('__BASE__', baseOf(ctx.path));
  const encoding = chooseEncoding(ctx, Object.keys(COMPRESS) as Encoding[]);
  ctx.body = encoding === undefined ? text : COMPRESS[encoding](text);
}

/**
 * Returns what serves the pages of the console: hashed files for ever, and the page itself for every other path under
 * `/console/`, because the page has routes of its own. Each of them needs no key, so `limit` counts it first.
 */
export function serveConsole(limit: (ctx: HttpContext) => void, folder = FOLDER) {
  const files = readFiles(folder);
  const serve = async (ctx: HttpContext): Promise<void> => {
    ctx.state.route = '/console';
    limit(ctx);
    if (files === null) {
      throw new ApiError('not_found', {
        detail: 'The console is not built. Run `npm ci` and `npm run build`, then start the service again.',
      });
    }
    ctx.set({ 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Resource-Policy': 'same-origin' });
    const [, name] = /\/assets\/([^/]+)$/.exec(ctx.path) ?? [];
    if (ctx.path === '/console') {
      ctx.redirect('console/');
    } else if (name === undefined) {
      sendPage(ctx, files);
    } else {
      const asset = files.assets.get(name);
      if (asset === undefined) throw new ApiError('not_found');
      sendAsset(ctx, asset);
    }
  };
  return (ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> => {
    const isConsole = ctx.path === '/console' || ctx.path.startsWith('/console/');
    return isConsole && (ctx.method === 'GET' || ctx.method === 'HEAD') ? serve(ctx) : next();
  };
}
