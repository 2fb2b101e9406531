import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import * as z from 'zod';
import { notFound } from '../errors.ts';
import { textField } from '../fields.ts';
import { openApiDocument } from '../openapi.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import type { RawReply } from '../reply.ts';
import type { Route, RouteGroup } from '../routing/route.ts';

const assetFolder = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The files of the page and their content types. They come from a package, so the page loads nothing from other hosts. */
const ASSETS: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** Relative paths: the page calls the address that it was loaded from, which may differ from PUBLIC_URL. */
const START_SCRIPT = `fetch('openapi.json').then((response) => response.json()).then((spec) => {
  spec.servers = [{ url: new URL('.', location.href).href.replace(/\\/$/, '') }];
  window.ui = SwaggerUIBundle({
    spec, dom_id: '#docs', deepLinking: true, persistAuthorization: false, tryItOutEnabled: true,
    displayOperationId: true, docExpansion: 'list', defaultModelsExpandDepth: 0,
  });
});
`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tributary API</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<noscript>This page needs JavaScript. The same information is in <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** For `/docs/`, where the page's relative addresses would not resolve. */
const REDIRECT_PAGE =
  '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=../docs">\n';

const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Whether a client asks for HTML by name. Clients on a command line accept everything and name nothing. */
const isBrowser = (accept: string): boolean => /\btext\/html\b/i.test(accept);

function page(contentType: string, body: string | Buffer): RawReply {
  return { headers: { 'Content-Type': contentType, 'Cache-Control': 'no-cache' }, body };
}

/**
 * The OpenAPI document by public URL, and the files of the page by name. They are cached because creating the document is
 * slow enough for a denial of service, and as bytes, so that callers who do not read their responses share the memory.
 */
const documents = new Map<string, Buffer>();
const files = new Map<string, Promise<Buffer>>();

function openApiBytes(groups: readonly RouteGroup[], publicUrl: string): Buffer {
  const known = documents.get(publicUrl);
  if (known !== undefined) return known;
  const bytes = Buffer.from(JSON.stringify(openApiDocument(groups, publicUrl)));
  documents.set(publicUrl, bytes);
  return bytes;
}

async function readAsset(file: string): Promise<Buffer> {
  const read = files.get(file) ?? readFile(path.join(assetFolder, file));
  files.set(file, read);
  return await read;
}

/** The OpenAPI document, and the page that shows it. `groups` returns all routes, including these. */
export const apiDocsRoutes = (groups: () => readonly RouteGroup[]): readonly Route[] => [
  route({
    method: 'GET',
    path: '/openapi.json',
    caller: anyone(),
    operationId: 'getOpenApi',
    summary: 'Retrieves the OpenAPI 3.1 document of this API.',
    response: {
      status: 200,
      contentType: 'application/json',
      schema: z.looseObject({ openapi: textField('3.1.0', 'The version of OpenAPI.') }),
    },
    handler: async ({ deps }) =>
      page('application/json; charset=utf-8', openApiBytes(groups(), deps.publicUrl)),
  }),

  route({
    method: 'GET',
    path: '/',
    caller: anyone(),
    operationId: 'getRoot',
    summary: 'Redirects a browser to the console, and every other client to the page of this API.',
    response: {
      status: 302,
      contentType: 'text/plain',
      headers: { Location: 'The address of the page, relative to this one.' },
    },
    handler: async ({ ctx }) => {
      // The router also matches `//` here.
      if (ctx.path !== '/') throw notFound();
      const location = isBrowser(ctx.get('Accept')) ? 'console/' : 'docs';
      return {
        headers: { Location: location, Vary: 'Accept', 'Content-Type': 'text/plain; charset=utf-8' },
        body: `See /${location}.\n`,
      };
    },
  }),

  route({
    method: 'GET',
    path: '/docs',
    caller: anyone(),
    operationId: 'getDocs',
    summary: 'Shows a page to read and try this API.',
    response: { status: 200, contentType: 'text/html' },
    handler: async ({ ctx }) => {
      const { headers, body } = page(
        'text/html; charset=utf-8',
        ctx.path.endsWith('/') ? REDIRECT_PAGE : PAGE,
      );
      return { headers: { ...headers, 'Content-Security-Policy': PAGE_POLICY }, body };
    },
  }),

  route({
    method: 'GET',
    path: '/docs/:file',
    caller: anyone(),
    operationId: 'getDocsFile',
    summary: 'Retrieves a file of that page.',
    errors: ['not_found'],
    response: { status: 200, contentType: '*/*' },
    handler: async ({ params }) => {
      const { file = '' } = params;
      if (file === 'start.js') return page('text/javascript; charset=utf-8', START_SCRIPT);
      const contentType = Object.hasOwn(ASSETS, file) ? ASSETS[file] : undefined;
      if (contentType === undefined) throw notFound();
      return page(contentType, await readAsset(file));
    },
  }),
];
