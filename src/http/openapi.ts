import * as z from 'zod';
import { createDocument } from 'zod-openapi';
import type { CreateDocumentOptions, ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { SERVICE_VERSION } from '../config/service-version.ts';
import { ERRORS } from './error-codes.ts';
import type { ErrorCode } from './error-codes.ts';
import * as enums from './enum-fields.ts';
import { exampleId, inputId, textField } from './fields.ts';
import { idempotencyKey } from './idempotency.ts';
import { CSV_TYPE } from './list-csv.ts';
import type { Route, RouteGroup } from './routing/route.ts';
import { sessionCookieName } from './session-cookie.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

/** Bounds of every integer. They are left out because they carry no information. */
const NO_BOUNDS = new Set<unknown>([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

const options: CreateDocumentOptions = {
  override: ({ jsonSchema, io }) => {
    if (NO_BOUNDS.has(jsonSchema.minimum)) delete jsonSchema.minimum;
    if (NO_BOUNDS.has(jsonSchema.maximum)) delete jsonSchema.maximum;
    // Responses may get new fields, and clients must accept them.
    if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  },
  allowEmptySchema: { never: true },
};

const HEADERS = {
  'X-Request-Id': 'The id of the request, also in the log.',
  'RateLimit-Policy': 'The limit: `q` calls per window of `w` seconds.',
  RateLimit: 'The remaining calls (`r`), and the seconds until the window ends (`t`).',
  'Retry-After': 'How many seconds to wait before the next attempt.',
  'WWW-Authenticate': '`Bearer`.',
  'Idempotency-Replayed': '`true` if this is the stored response of an earlier call.',
} as const;

const CODE = 'The code of the error. Stable.';

const problem = z
  .object({
    type: textField('urn:tributary:error:invalid_request', 'A name for the code as a URI.'),
    title: textField(
      'The request is not valid',
      'The meaning of the code. The same text for each error with it.',
    ),
    status: z.int().meta({ description: 'The HTTP status.', examples: [400] }),
    detail: z.string().meta({ description: 'A sentence about this request.' }).optional(),
    code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]).describe(CODE),
    requestId: textField('6e1c9f0a-2b7d-4c55-9a3e-1f2d3c4b5a69', HEADERS['X-Request-Id']),
    errors: z
      .array(
        z.object({
          path: z
            .string()
            .meta({ description: 'Names and indexes, separated by dots.', examples: ['rows.3.slug'] }),
          message: textField('Must be 2 to 64 characters of A-Z, a-z, 0-9, _ and -.', 'What it must be.'),
        }),
      )
      .describe('The fields that are not valid.')
      .optional(),
    existingId: z
      .string()
      .meta({
        description: 'The id that has the `externalId` of the request.',
        examples: [exampleId('affiliate')],
      })
      .optional(),
  })
  .meta({
    id: 'Problem',
    description: 'An error (RFC 9457). `code` is stable. docs/errors.md explains what to do.',
  });

type HeaderName = keyof typeof HEADERS;

const header = (description: string) => ({ description, schema: { type: 'string' as const } });

function headerRefs(names: readonly HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Returns the error codes of an operation: those that follow from its declaration, and those of its handler. */
export function errorCodesOf(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['invalid_request', ...(route.errors ?? [])];
  const queryShape = route.query instanceof z.ZodObject ? route.query.shape : {};
  if ('cursor' in queryShape) codes.push('invalid_cursor');
  if (route.auth === 'account' || route.auth === 'sdk') codes.push('unauthorized', 'unavailable');
  const isOfSession = ['session', 'creator', 'operator'].includes(route.auth);
  const takesSession = route.auth === 'account' || isOfSession;
  if (isOfSession) codes.push('unauthorized', 'unavailable');
  if (takesSession) codes.push('cross_origin');
  if (route.permission !== null) codes.push('forbidden');
  if (route.permission === 'payout') codes.push('session_not_raised');
  if (takesSession && route.path.includes(':')) codes.push('not_found');
  if (route.rateLimitName !== null || route.limitsAddress) codes.push('rate_limited');
  if (route.body !== null) codes.push('body_in_small_parts', 'payload_too_large', 'unsupported_media_type');
  if (route.storesResponses) codes.push('idempotency_key_reused', 'idempotency_key_in_use');
  return [...new Set(codes)];
}

const EXTRA_HEADERS: Partial<Record<number, readonly HeaderName[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** Returns the schema of an error with one of these codes. */
function problemOf(codes: readonly ErrorCode[]) {
  const code = { type: 'string' as const, enum: [...codes], description: CODE };
  return {
    allOf: [
      { $ref: '#/components/schemas/Problem' },
      { type: 'object' as const, properties: { code }, required: ['code'] },
    ],
  };
}

function errorResponses(route: Route): Record<string, ZodOpenApiResponseObject> {
  const codes = errorCodesOf(route);
  const statuses = [...new Set(codes.map((code) => ERRORS[code][0]))].toSorted((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => ERRORS[code][0] === status);
      const response: ZodOpenApiResponseObject = {
        description: ofStatus.map((code) => `\`${code}\`: ${ERRORS[code][1]}.`).join(' '),
        headers: headerRefs(['X-Request-Id', ...(EXTRA_HEADERS[status] ?? [])]),
        content: { 'application/problem+json': { schema: problemOf(ofStatus) } },
        'x-error-codes': ofStatus,
      };
      return [String(status), response];
    }),
  );
}

/** Returns the description of a response: that of its schema, or what its content type says. */
function describeSuccess({ status, schema, contentType }: Route['response']): string {
  const described = schema === null ? undefined : z.globalRegistry.get(schema)?.description;
  if (described !== undefined) return described;
  return status === 302 ? 'The redirect.' : `A file of type \`${contentType}\`.`;
}

function successResponse(route: Route): ZodOpenApiResponseObject {
  const { schema, contentType, headers = {} } = route.response;
  return {
    description: describeSuccess(route.response),
    headers: {
      ...headerRefs([
        'X-Request-Id',
        ...(route.rateLimitName === null && !route.limitsAddress
          ? []
          : (['RateLimit-Policy', 'RateLimit'] as const)),
        ...(route.storesResponses ? (['Idempotency-Replayed'] as const) : []),
      ]),
      ...Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, header(text)])),
    },
    content: {
      [contentType]: { schema: schema ?? z.string() },
      ...(route.response.asCsv === true ? { [CSV_TYPE]: { schema: z.string() } } : {}),
    },
  };
}

/** Returns the schema of a path parameter: an id if the route declares it as one, else a text. */
function pathParameter(route: Route, name: string): z.ZodType {
  if (name === 'appId' || name === 'customerAppId') return inputId('app');
  const kind = route.ids[name];
  if (kind !== undefined) return inputId(kind);
  if (name === 'provider') return enums.provider;
  const [example, description] = PATH_TEXTS[name] ?? [];
  if (example === undefined || description === undefined)
    throw new Error(`the path parameter ${name} has no text`);
  return textField(example, description);
}

/** An example and the description of each path parameter that is neither an id nor a provider. */
const PATH_TEXTS: Readonly<Record<string, readonly [example: string, description: string]>> = {
  slug: ['spring', 'The slug of the link, in any case.'],
  linkSubdomain: ['my-app', 'The link subdomain of the app, or a former one.'],
  customerUserId: ['user-4711', "The app's own id of the user."],
  file: ['swagger-ui.css', 'A file of the documentation page.'],
};

/** Returns the names of the parameters in a path. */
export function pathParameters(routePath: string): string[] {
  return [...routePath.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** Returns the path in the syntax of OpenAPI. */
export function openApiPath(routePath: string): string {
  return routePath.replaceAll(/:(\w+)/g, '{$1}');
}

function permissionNote(route: Route): string {
  if (route.auth === 'account') return `Requires an account key with the permission \`${route.permission}\`.`;
  if (route.auth === 'session')
    return `Requires a session of the console${route.permission === null ? '' : `, whose key has the permission \`${route.permission}\``}. A key is not accepted.`;
  if (route.auth === 'creator')
    return 'Requires the session of a creator. A key and a session of an account are not accepted.';
  if (route.auth === 'operator')
    return 'Requires the session of the operator. No key and no other session is accepted.';
  if (route.auth === 'provider') return "Authenticated by the provider's signature or token.";
  return route.auth === 'sdk' ? 'Requires an SDK key.' : '';
}

const SECURITY: Record<Route['auth'], (route: Route) => Record<string, string[]>[]> = {
  account: (route) => [{ accountKey: [route.permission ?? ''] }, { session: [route.permission ?? ''] }],
  session: (route) => [{ session: route.permission === null ? [] : [route.permission] }],
  creator: () => [{ creatorSession: [] }],
  operator: () => [{ operatorSession: [] }],
  sdk: () => [{ sdkKey: [] }],
  none: () => [],
  provider: () => [],
};

function operation(route: Route, group: string): ZodOpenApiOperationObject {
  const names = pathParameters(route.path);
  const query = route.query instanceof z.ZodObject ? route.query : undefined;
  const note = permissionNote(route);
  return {
    operationId: route.operationId,
    tags: [group],
    summary: route.summary,
    description: [route.description, note].filter(Boolean).join('\n\n') || route.summary,
    security: SECURITY[route.auth](route),
    ...(route.permission === null ? {} : { 'x-permission': route.permission }),
    requestParams: {
      ...(names.length === 0
        ? {}
        : { path: z.object(Object.fromEntries(names.map((name) => [name, pathParameter(route, name)]))) }),
      ...(query === undefined ? {} : { query }),
      ...(route.takesIdempotencyKey
        ? { header: z.object({ 'Idempotency-Key': idempotencyKeyHeader.optional() }) }
        : {}),
    },
    ...requestBody(route),
    responses: { [String(route.response.status)]: successResponse(route), ...errorResponses(route) },
  };
}

const idempotencyKeyHeader = idempotencyKey.meta({
  description:
    'A repeated call with the same key and body returns the stored response and does nothing else. Stored for 24 hours; for exports forever.',
  examples: ['2f1c6f3e-payout-june'],
});

function requestBody(route: Route): Pick<ZodOpenApiOperationObject, 'requestBody'> {
  if (route.auth === 'provider') {
    const schema = z.looseObject({}).meta({ description: 'The event in the format of the provider.' });
    return { requestBody: { required: true, content: { 'application/json': { schema } } } };
  }
  if (route.body === null) return {};
  const required = !route.body.safeParse({}).success;
  return { requestBody: { required, content: { 'application/json': { schema: route.body } } } };
}

/** Creates the OpenAPI 3.1 document from the route table and the schemas that validate requests. */
export function openApiDocument(groups: readonly RouteGroup[], publicUrl: string): OpenApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const group of groups) {
    for (const route of group.routes) {
      (paths[openApiPath(route.path)] ??= {})[route.method.toLowerCase()] = operation(route, group.name);
    }
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Tributary',
        version: SERVICE_VERSION,
        description:
          'Attributes app installs and purchases to the links of creators, and calculates and pays their commissions.\n\n' +
          'Instants are epoch milliseconds, money is whole US cents, and rates are basis points. Ids are opaque.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl }],
      tags: groups.map(({ name, description }) => ({ name, description })),
      paths,
      components: {
        schemas: { Problem: problem },
        headers: Object.fromEntries(Object.entries(HEADERS).map(([name, text]) => [name, header(text)])),
        securitySchemes: {
          accountKey: { type: 'http', scheme: 'bearer', description: 'An account key, `tri_sk_live_…`.' },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: sessionCookieName(publicUrl),
            description:
              'A session of the console, which holds an account key. It counts only without an `Authorization` header, and only for pages of this service.',
          },
          creatorSession: {
            type: 'apiKey',
            in: 'cookie',
            name: sessionCookieName(publicUrl, 'creator'),
            description:
              'A session of a creator. It counts only under `/creator`, without an `Authorization` header, and only for pages of this service.',
          },
          operatorSession: {
            type: 'apiKey',
            in: 'cookie',
            name: sessionCookieName(publicUrl, 'operator'),
            description:
              'A session of the operator. It counts only under `/operator`, without an `Authorization` header, and only for pages of this service.',
          },
          sdkKey: { type: 'http', scheme: 'bearer', description: "An app's SDK key, `pk_live_…`." },
        },
      },
    },
    options,
  );
}
