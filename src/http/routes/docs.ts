import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import * as z from 'zod';
import type { HttpContext } from '../context.ts';
import { notFound } from '../errors.ts';
import { openApiDocument } from '../openapi.ts';
import { rawRoute } from '../route.ts';
import type { Route, RouteGroup } from '../route.ts';

const assetFolder = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The files of the page, with their types. They come with the package, so the page asks no other address. */
const ASSETS: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** The page asks the address it was read from, whatever the service is called to the world: paths are relative. */
const START_SCRIPT = `fetch('openapi.json').then((answer) => answer.json()).then((spec) => {
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
<noscript>This page needs JavaScript; the same is in <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** Under an address with a slash at its end the page's relative addresses would lead nowhere. */
const SLASH_PAGE =
  '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=../docs">\n';

const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function send(ctx: HttpContext, contentType: string, body: string | Buffer): void {
  ctx.set('Content-Type', contentType);
  ctx.set('Cache-Control', 'no-cache');
  ctx.body = body;
}

/** The description as text, by the service's address. Making it takes long enough to keep a process busy by asking. */
const descriptions = new Map<string, string>();

function describe(groups: readonly RouteGroup[], publicUrl: string): string {
  const known = descriptions.get(publicUrl);
  if (known !== undefined) return known;
  const text = JSON.stringify(openApiDocument(groups, publicUrl));
  descriptions.set(publicUrl, text);
  return text;
}

/** The description of the API and the page that shows it; `groups` answers all routes, these among them. */
export const docsRoutes = (groups: () => readonly RouteGroup[]): readonly Route[] => [
  rawRoute({
    method: 'GET',
    path: '/openapi.json',
    auth: 'none',
    permission: null,
    operationId: 'getOpenApi',
    summary: 'Describes this API (OpenAPI 3.1).',
    response: {
      status: 200,
      contentType: 'application/json',
      schema: z.looseObject({ openapi: z.string() }),
    },
    handler: async ({ ctx, deps }) => {
      send(ctx, 'application/json; charset=utf-8', describe(groups(), deps.publicUrl));
    },
  }),

  rawRoute({
    method: 'GET',
    path: '/docs',
    auth: 'none',
    permission: null,
    operationId: 'getDocs',
    summary: 'A page to read and try this API.',
    response: { status: 200, contentType: 'text/html' },
    handler: async ({ ctx }) => {
      ctx.set('Content-Security-Policy', PAGE_POLICY);
      send(ctx, 'text/html; charset=utf-8', ctx.path.endsWith('/') ? SLASH_PAGE : PAGE);
    },
  }),

  rawRoute({
    method: 'GET',
    path: '/docs/:file',
    auth: 'none',
    permission: null,
    operationId: 'getDocsFile',
    summary: 'A file of that page.',
    errors: ['not_found'],
    response: { status: 200, contentType: '*/*' },
    handler: async ({ ctx, params }) => {
      const { file = '' } = params;
      if (file === 'start.js') {
        send(ctx, 'text/javascript; charset=utf-8', START_SCRIPT);
        return;
      }
      const contentType = Object.hasOwn(ASSETS, file) ? ASSETS[file] : undefined;
      if (contentType === undefined) throw notFound();
      send(ctx, contentType, await readFile(path.join(assetFolder, file)));
    },
  }),
];
