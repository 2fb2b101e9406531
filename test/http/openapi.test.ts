import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as z from 'zod';
import { ERRORS } from '../../src/http/error-codes.ts';
import { openApiDocument, openApiPath, pathParameters } from '../../src/http/openapi.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import { routeGroups, routes } from '../../src/http/routes.ts';
import { startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { exampleOf } from '../support/example-of.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});

const document = openApiDocument(routeGroups, 'https://api.example.test');
const operationOf = (method: string, path: string) =>
  (document.paths?.[openApiPath(path)] as Record<string, Record<string, unknown>> | undefined)?.[
    method.toLowerCase()
  ];

interface JsonSchema {
  readonly [name: string]: unknown;
  readonly description?: string;
  readonly $ref?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly schema?: JsonSchema;
}

/** What the description of a field must contain: the unit that its name or its type has. */
const UNITS: readonly (readonly [name: RegExp, unit: RegExp])[] = [
  [/Cents$|^(matured|lifetime)$/, /US cents/],
  [/At$|^(from|to)$/, /Epoch milliseconds/],
  [/Bps$/, /Basis points/],
  [/Minor$/, /minor units of/],
  [/Days$/, /Days/],
  [/Minutes$/, /Minutes/],
  [/Seconds$/, /seconds/],
];

/** The fields `from` and `to` of these are numbers. */
const RANGES = /\/(paymentNumber|monthsSinceFirst)$/;

/** Finds the fields and parameters of a document whose description is missing or incomplete. */
function describedFields(root: JsonSchema): { fields: number; problems: string[] } {
  const problems: string[] = [];
  let fields = 0;
  const targetOf = (schema: JsonSchema): JsonSchema =>
    schema.$ref === undefined
      ? schema
      : (schema.$ref
          .split('/')
          .slice(1)
          .reduce<unknown>((at, name) => (at as JsonSchema)[name], root) as JsonSchema);
  const check = (path: string, name: string, field: JsonSchema): void => {
    fields += 1;
    const text = field.description ?? targetOf(field).description ?? field.schema?.description ?? '';
    if (text === '') problems.push(`${path}.${name} has no description`);
    if (field.anyOf?.some(({ type }) => type === 'null') === true && !/\bnull\b/i.test(text)) {
      problems.push(`${path}.${name} does not state what null means`);
    }
    for (const [ofName, unit] of UNITS) {
      if (ofName.test(name) && !unit.test(text) && !RANGES.test(path))
        problems.push(`${path}.${name} lacks ${unit}`);
    }
  };
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'properties') {
        for (const [name, field] of Object.entries(inner as Record<string, JsonSchema>))
          check(path, name, field);
      }
      if (key === 'parameters') {
        for (const parameter of inner as (JsonSchema & { name: string })[])
          check(path, parameter.name, parameter);
      }
      if (key !== 'examples') walk(inner, `${path}/${key}`);
    }
  };
  walk(root, '');
  return { fields, problems };
}

describe('the OpenAPI document', () => {
  // @promise get-openapi, openapi-from-schemas
  test('GET /openapi.json returns the document of the route table', async () => {
    const { status, body } = await api.call('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(body).toEqual(JSON.parse(JSON.stringify(document)));
  });

  // @promise openapi-from-schemas
  test('the document has every route under a unique operation id', () => {
    for (const { method, path } of routes) expect(operationOf(method, path)).toBeDefined();
    expect(new Set(routes.map((route) => route.operationId)).size).toBe(routes.length);
  });

  // @promise openapi-named-schemas
  test('each JSON response is a named schema or a list of one, with its own description', () => {
    const unnamed = routes.flatMap((route) => {
      const { responses } = operationOf(route.method, route.path) as {
        responses: Record<string, { description: string; content: Record<string, { schema: unknown }> }>;
      };
      const success = responses[String(route.response.status)];
      expect(success?.description).not.toMatch(/^(OK|Created|Done)\.$/);
      const schema = JSON.stringify(success?.content['application/json']?.schema ?? '#/components/schemas/');
      return schema.includes('#/components/schemas/') ? [] : [route.operationId];
    });
    expect(unnamed).toEqual(['getHealth', 'getOpenApi']);
    expect(Object.keys(document.components?.schemas ?? {})).toEqual(
      expect.arrayContaining([
        'Affiliate',
        'App',
        'Commission',
        'Delivery',
        'Explanation',
        'Link',
        'Payout',
        'Problem',
      ]),
    );
  });

  // @promise openapi-named-schemas
  test('a provider in a path is one of the providers, and an error has one of the codes of its operation', () => {
    const { parameters, responses } = operationOf('POST', '/webhooks/:provider/:customerAppId') as {
      parameters: { name: string; schema: { enum?: string[] } }[];
      responses: Record<string, { content: Record<string, { schema: object }> }>;
    };
    expect(parameters.find(({ name }) => name === 'provider')?.schema.enum).toEqual([...PROVIDER_NAMES]);
    expect(responses['401']?.content['application/problem+json']?.schema).toMatchObject({
      allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: ['unauthorized'] } } }],
    });
  });

  // @promise openapi-described-fields
  test('each field and parameter has a description, which states the unit of a number and what null means', () => {
    const { fields, problems } = describedFields(JSON.parse(JSON.stringify(document)) as JsonSchema);
    expect(fields).toBeGreaterThan(300);
    expect(problems).toEqual([]);
  });

  // @promise json-bodies
  test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s is described with its security, its parameters, and each status with its codes',
    (_name, route) => {
      const operation = operationOf(route.method, route.path) as {
        security: Record<string, string[]>[];
        'x-permission'?: string;
        parameters?: { in: string; name: string }[];
        responses: Record<string, { 'x-error-codes'?: string[] }>;
      };
      expect(operation['x-permission']).toBe(route.permission ?? undefined);
      expect(operation.security).toEqual(
        route.auth === 'account'
          ? [{ accountKey: [route.permission] }, { session: [route.permission] }]
          : route.auth === 'session'
            ? [{ session: route.permission === null ? [] : [route.permission] }]
            : route.auth === 'creator'
              ? [{ creatorSession: [] }]
              : route.auth === 'operator'
                ? [{ operatorSession: [] }]
                : route.auth === 'sdk'
                  ? [{ sdkKey: [] }]
                  : [],
      );
      const names = (operation.parameters ?? []).filter(({ in: place }) => place === 'path');
      expect(names.map(({ name }) => name)).toEqual(pathParameters(route.path));
      expect(operation.responses[String(route.response.status)]).toBeDefined();
      for (const [status, response] of Object.entries(operation.responses)) {
        for (const code of response['x-error-codes'] ?? []) {
          expect(String(ERRORS[code as keyof typeof ERRORS][0])).toBe(status);
        }
      }
      for (const code of route.errors ?? []) {
        expect(operation.responses[ERRORS[code][0]]?.['x-error-codes']).toContain(code);
      }
      if (['account', 'session', 'creator', 'operator'].includes(route.auth)) {
        for (const status of ['401', '403', '429', '503']) expect(operation.responses[status]).toBeDefined();
      }
    },
  );

  test.each(
    routes
      .filter((route) => route.body !== null)
      .map((route) => [`${route.method} ${route.path}`, route] as const),
  )('the example body of %s is valid', (_name, route) => {
    const body = exampleOf(z.toJSONSchema(route.body as z.ZodType, { io: 'input', unrepresentable: 'any' }));
    expect((route.body as z.ZodType).safeParse(body)).toMatchObject({ success: true });
  });
});

describe('the documentation page', () => {
  // @promise get-root
  test.each([
    ['a command-line client to the page', '*/*', 'docs'],
    ['a client of JSON to the page', 'application/json', 'docs'],
    [
      'a browser to the console',
      'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'console/',
    ],
  ])('GET / redirects %s', async (_client, accept, location) => {
    const { status, headers } = await api.call('GET', '/', { headers: { Accept: accept } });
    expect({ status, location: headers.get('location'), vary: headers.get('vary') }).toEqual({
      status: 302,
      location,
      vary: 'Accept',
    });
  });

  test('GET /docs/ leads to the page', async () => {
    const { status, text } = await api.call('GET', '/docs/');
    expect({ status, text }).toEqual({ status: 200, text: expect.stringContaining('url=../docs"') });
  });

  // @promise get-docs, docs-page
  test('the page loads all its files from this service', async () => {
    const page = await api.call('GET', '/docs');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source = '']) => source);
    expect(sources.length).toBeGreaterThan(3);
    for (const source of sources) {
      expect(source).not.toMatch(/^\/|:/);
      expect((await api.call('GET', `/${source}`)).status).toBe(200);
    }
  });

  test.each([
    ['/docs/:file', '/docs/swagger-ui-bundle.js', { file: 'swagger-ui-bundle.js' }],
    ['/openapi.json', '/openapi.json', {}],
  ] as const)('the responses of %s share their memory', async (routePath, at, params) => {
    const route = routes.find(({ path }) => path === routePath);
    const bodies = [];
    for (let nth = 0; nth < 2; nth += 1) {
      const ctx = { path: at, query: {}, querystring: '', set: () => {}, body: undefined };
      await route?.run(ctx as never, { now: Date.now, publicUrl: 'https://x', intake: {} } as never, params);
      bodies.push(ctx.body);
    }
    expect(bodies[0]).toBeInstanceOf(Buffer);
    expect(bodies[0]).toBe(bodies[1]);
  });

  // @promise get-docs-file
  test.each([['..%2fpackage.json'], ['index.js'], ['__proto__'], ['swagger-ui.css.map']])(
    'the file %s of the same folder is not served',
    async (file) => {
      expect((await api.call('GET', `/docs/${file}`)).status).toBe(404);
    },
  );
});
