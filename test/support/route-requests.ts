import { randomBytes } from 'node:crypto';
import { ID_PREFIXES } from '../../src/domain/ids.ts';
import type { IdKind } from '../../src/domain/ids.ts';
import { openApiDocument, openApiPath } from '../../src/http/openapi.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routeGroups } from '../../src/http/routes.ts';
import { exampleId } from '../../src/http/fields.ts';
import { exampleOf } from './example-of.ts';

/** A place in a request that has an id. */
export interface IdPlace {
  readonly where: 'path' | 'query' | 'body';
  readonly name: string;
  readonly kind: IdKind;
}

/** A request of a route, built from the examples in the OpenAPI document. */
export interface RouteRequest {
  readonly path: string;
  readonly body?: unknown;
  /** Every place that has an id, except the app in the path. */
  readonly idPlaces: readonly IdPlace[];
}

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: object }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
}

const document = JSON.parse(JSON.stringify(openApiDocument(routeGroups, '/'))) as {
  paths: Record<string, Record<string, Operation>>;
};

const KIND_OF_EXAMPLE = new Map<unknown, IdKind>(
  (Object.keys(ID_PREFIXES) as IdKind[]).map((kind) => [exampleId(kind), kind]),
);

/** Fields whose value must be unique, so each request gets another one. */
const UNIQUE_FIELDS = new Set(['slug', 'linkSubdomain', 'externalId']);

/** Query parameters that an operation takes only without others, whose examples a request has. */
const EXCLUSIVE: Readonly<Record<string, readonly string[]>> = { listAffiliates: ['q', 'tag'] };

/** Returns the OpenAPI operation of a route. */
export function operationOf(route: Route): Operation {
  const operation = document.paths[openApiPath(route.path)]?.[route.method.toLowerCase()];
  if (operation === undefined) throw new Error(`${route.method} ${route.path} is not described`);
  return operation;
}

/**
 * Returns a valid request of the route. `idOf` returns the id for each place, including the app in the path, whose place
 * is named `appId`. `skip` names query parameters to leave out.
 */
export function requestOf(
  route: Route,
  idOf: (place: IdPlace) => string,
  skip: readonly string[] = ['cursor'],
): RouteRequest {
  const { parameters = [], requestBody } = operationOf(route);
  const idPlaces: IdPlace[] = [];
  const filled = (where: IdPlace['where'], name: string, value: unknown): unknown => {
    const kind = KIND_OF_EXAMPLE.get(value);
    if (kind !== undefined) {
      const place = { where, name, kind };
      if (name !== 'appId') idPlaces.push(place);
      return idOf(place);
    }
    if (where === 'body' && typeof value === 'string' && UNIQUE_FIELDS.has(name)) {
      return `${value}-${randomBytes(4).toString('hex')}`;
    }
    if (Array.isArray(value)) return value.map((item) => filled(where, name, item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, filled(where, key, child)]));
  };

  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const schema = parameters.find((parameter) => parameter.in === 'path' && parameter.name === name)?.schema;
    return encodeURIComponent(String(filled('path', name, exampleOf(schema ?? {}, document))));
  });
  const query = new URLSearchParams();
  for (const { in: where, name, schema } of parameters) {
    if (where === 'query' && !skip.includes(name) && EXCLUSIVE[route.operationId]?.includes(name) !== true) {
      query.set(name, String(filled('query', name, exampleOf(schema, document))));
    }
  }
  const bodySchema = requestBody?.content['application/json']?.schema;
  const body = bodySchema === undefined ? {} : { body: filled('body', '', exampleOf(bodySchema, document)) };
  const search = query.toString();
  return { path: search === '' ? path : `${path}?${search}`, ...body, idPlaces };
}
