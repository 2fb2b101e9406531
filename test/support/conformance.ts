import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument, openApiPath } from '../../src/http/openapi.ts';
import { routeGroups, routes } from '../../src/http/routes.ts';

type Json = Record<string, unknown>;

interface DescribedResponse {
  readonly content?: Record<string, { readonly schema: Json }>;
  readonly 'x-error-codes'?: readonly string[];
}

/**
 * Closes every object of a schema, so that each field of a response must be described. A part of an `allOf` only narrows
 * another part.
 */
function closeObjects(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closeObjects);
  if (typeof value !== 'object' || value === null) return value;
  const closed = Object.fromEntries(
    Object.entries(value).map(([name, child]) => [name, name === 'allOf' ? child : closeObjects(child)]),
  );
  const isObject =
    closed['type'] === 'object' && 'properties' in closed && !('additionalProperties' in closed);
  return isObject ? { ...closed, additionalProperties: false } : closed;
}

const described = closeObjects(
  JSON.parse(JSON.stringify(openApiDocument(routeGroups, 'https://api.example.test'))),
) as {
  paths: Record<string, Record<string, { responses: Record<string, DescribedResponse> }>>;
  components: Json;
};

// Most schemas are compiled for a few responses. `npm run check` validates the document itself.
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  validateSchema: false,
  inlineRefs: false,
  code: { optimize: false },
});
// oxlint-disable-next-line typescript/no-unsafe-call -- the package's types are those of CommonJS
(addFormats as unknown as (target: Ajv2020) => void)(ajv);
ajv.addSchema({ $id: 'api', components: described.components });

const validators = new Map<string, ValidateFunction>();

function validatorOf(key: string, schema: Json): ValidateFunction {
  const known = validators.get(key);
  if (known !== undefined) return known;
  const text = JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/');
  const made = ajv.compile(JSON.parse(text) as Json);
  validators.set(key, made);
  return made;
}

const patterns = routes
  .map((route) => ({
    route,
    pattern: new RegExp(`^${route.path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`),
  }))
  // Literal paths before those with parameters, like the router.
  .toSorted((a, b) => a.route.path.split(':').length - b.route.path.split(':').length);

/** Throws if a response does not match the OpenAPI document. */
export function expectDescribed(
  method: string,
  url: string,
  response: { readonly status: number; readonly headers: Headers; readonly text: string },
): void {
  const [path = ''] = url.split('?');
  const routed = method === 'HEAD' ? 'GET' : method;
  const found = patterns.find(({ route, pattern }) => route.method === routed && pattern.test(path));
  if (found === undefined || response.status === 405) return;
  const name = `${found.route.method} ${found.route.path} ${response.status}`;
  const declared =
    described.paths[openApiPath(found.route.path)]?.[found.route.method.toLowerCase()]?.responses[
      String(response.status)
    ];
  if (declared === undefined) throw new Error(`${name} is not described: ${response.text.slice(0, 300)}`);
  if (method === 'HEAD' || declared.content === undefined) return;
  const [contentType = ''] = (response.headers.get('content-type') ?? '').split(';');
  const media = declared.content[contentType] ?? declared.content['*/*'];
  if (media === undefined) throw new Error(`${name} has the undescribed type ${contentType}`);
  if (!contentType.endsWith('json')) return;
  const body = JSON.parse(response.text) as Json;
  const validate = validatorOf(`${name} ${contentType}`, media.schema);
  if (!validate(body)) {
    throw new Error(
      `${name} differs from its description: ${ajv.errorsText(validate.errors)}\n${response.text.slice(0, 500)}`,
    );
  }
  const codes = declared['x-error-codes'];
  if (codes !== undefined && !codes.includes(String(body['code']))) {
    throw new Error(`${name} has the undescribed code ${String(body['code'])}`);
  }
}
