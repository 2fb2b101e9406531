import { errorCodesOf, openApiDocument, openApiPath } from '../../src/http/openapi.ts';
import type { Route, RouteGroup } from '../../src/http/routing/route.ts';
import { exampleOf } from '../../test/support/example-of.ts';
import { ERRORS } from '../../src/http/error-codes.ts';
import { describeFields, describeType, inCell, inText } from './describe-schema.ts';
import type { Schema } from './describe-schema.ts';
import { slugOf } from './slug.ts';

/** The address that the examples call is `$API`; this one only decides how the cookies are called. */
const PUBLIC_URL = 'https://tributary.example.com';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface Content {
  readonly [type: string]: { readonly schema: Schema } | undefined;
}

interface Operation {
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string;
        readonly headers?: Readonly<
          Record<string, { readonly $ref?: string; readonly description?: string }>
        >;
        readonly content?: Content;
      }
    >
  >;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, { readonly type: string; readonly name?: string }>>;
  };
}

interface ApiPage {
  /** The file on the site. */
  readonly file: string;
  readonly title: string;
  readonly text: string;
}

const fence = (mark: string, text: string): string => `\`\`\`${mark}\n${text}\n\`\`\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** Returns an example that matches a schema. A text without an example of its own becomes `…`. */
export const exampleFor = (schema: object, document: object): unknown => exampleOf(schema, document, '…');

/** The names of the ids that the pages of the documentation keep in a variable of the shell. */
const VARIABLES: Readonly<Record<string, string>> = { appId: '$APP', customerAppId: '$APP' };

/** Returns the headers of a call that say who calls. */
function credentials(operation: Operation, document: Document): string[] {
  const [scheme] = Object.keys(operation.security?.[0] ?? {});
  if (scheme === undefined) return [];
  if (scheme === 'accountKey') return ['-H "Authorization: Bearer $KEY"'];
  if (scheme === 'sdkKey') return ['-H "Authorization: Bearer $SDK_KEY"'];
  const cookie = document.components.securitySchemes[scheme]?.name ?? '';
  return [`--cookie "${cookie}=$SESSION"`, '-H "Origin: $API"'];
}

function curlOf(route: Route, operation: Operation, document: Document): string {
  const parameters = operation.parameters ?? [];
  const valueOf = ({ schema }: Parameter) => String(exampleFor(schema, document));
  const at = route.path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const parameter = parameters.find((one) => one.in === 'path' && one.name === name);
    return VARIABLES[name] ?? (parameter === undefined ? name : encodeURIComponent(valueOf(parameter)));
  });
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required === true)
    .map((parameter) => `${parameter.name}=${encodeURIComponent(valueOf(parameter))}`)
    .join('&');
  const method = route.method === 'GET' ? '' : ` -X ${route.method}`;
  const schema = operation.requestBody?.content['application/json']?.schema;
  const body = schema === undefined ? undefined : json(exampleFor(schema, document)).replaceAll("'", "'\\''");
  return [
    `curl -sS${method} "$API${at}${query === '' ? '' : `?${query}`}"`,
    ...credentials(operation, document),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${body}'`]),
  ].join(' \\\n  ');
}

function describeRequest(route: Route, operation: Operation, document: Document): string[] {
  const parameters = operation.parameters ?? [];
  const body = operation.requestBody;
  const schema = body?.content['application/json']?.schema;
  const parts: string[] = [];
  if (parameters.length > 0) {
    parts.push(
      table(
        ['Parameter', 'In', 'Type', 'Description'],
        parameters.map(({ name, in: where, required, description, schema: type }) => [
          `\`${name}\`${required === true && where !== 'path' ? ' (required)' : ''}`,
          where,
          describeType(type, document),
          inCell(description ?? type.description ?? ''),
        ]),
      ),
    );
  }
  if (route.auth === 'provider') {
    parts.push('The billing provider sends the request: see [Billing providers](../providers.md).');
    return parts;
  }
  if (schema !== undefined) {
    parts.push(
      body?.required === true ? 'The body, in JSON:' : 'The body, in JSON, which may be left out:',
      fieldTable(schema, document, true),
    );
  }
  parts.push(fence('bash', curlOf(route, operation, document)));
  return parts;
}

/** Returns the table of the fields of a body. A response names what may be absent, a request what is required. */
function fieldTable(schema: Schema, document: object, isRequest: boolean): string {
  const rows = describeFields(schema, document).map(({ name, type, isRequired, description }) => [
    `\`${name}\`${isRequest && isRequired ? ' (required)' : ''}${!isRequest && !isRequired ? ' (may be absent)' : ''}`,
    type,
    inCell(description),
  ]);
  return rows.length === 0
    ? inText(schema.description ?? 'Any object.')
    : table(['Field', 'Type', 'Description'], rows);
}

function describeResponse(route: Route, operation: Operation, document: Document): string[] {
  const { status } = route.response;
  const response = operation.responses[String(status)];
  const schema = response?.content?.['application/json']?.schema;
  const headers = Object.entries(response?.headers ?? {}).filter(([, { $ref }]) => $ref === undefined);
  const parts = [`**Response ${status}.** ${inText(response?.description ?? '')}`];
  if (headers.length > 0) {
    const rows = headers.map(([name, { description }]) => [`\`${name}\``, inCell(description ?? '')]);
    parts.push(table(['Header', 'Description'], rows));
  }
  if (schema !== undefined && route.response.schema !== null) {
    parts.push(fieldTable(schema, document, false), fence('json', json(exampleFor(schema, document))));
  }
  const codes = errorCodesOf(route).toSorted((a, b) => ERRORS[a][0] - ERRORS[b][0]);
  const links = codes.map((code) => `${ERRORS[code][0]} [\`${code}\`](../errors.md#${code})`);
  parts.push(`**Errors.** ${links.join(', ')}.`);
  return parts;
}

/** Returns the title of an operation: its summary as a heading. */
const titleOf = (route: Route): string => route.summary.replace(/\.$/, '');

/** Returns the anchor of each operation of a page. A heading that is there already gets a number, as on GitHub. */
function anchorsOf(routes: readonly Route[]): Map<Route, string> {
  const seen = new Map<string, number>();
  return new Map(
    routes.map((route) => {
      const slug = slugOf(titleOf(route));
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return [route, count === 0 ? slug : `${slug}-${count}`];
    }),
  );
}

/** How a page names an operation, below its heading. */
export const signatureOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string =>
  `\`${method} ${path}\``;

function groupPage({ name, description, routes }: RouteGroup, document: Document): string {
  const operations = routes.map((route) => {
    const operation = document.paths[openApiPath(route.path)]?.[route.method.toLowerCase()];
    if (operation === undefined) throw new Error(`${route.method} ${route.path} is not described`);
    return [
      `## ${inText(titleOf(route))}`,
      `**${signatureOf(route)}**`,
      operation.description === route.summary ? '' : inText(operation.description),
      ...describeRequest(route, operation, document),
      ...describeResponse(route, operation, document),
    ]
      .filter((part) => part !== '')
      .join('\n\n');
  });
  return `---\noutline: [2, 2]\n---\n\n# ${name}\n\n${inText(description)}\n\n${operations.join('\n\n')}\n`;
}

function overviewPage(groups: readonly RouteGroup[]): string {
  const sections = groups.map(({ name, description, routes }) => {
    const anchors = anchorsOf(routes);
    const rows = routes.map((route) => [
      signatureOf(route),
      `[${inCell(titleOf(route))}](${slugOf(name)}.md#${anchors.get(route) ?? ''})`,
      route.permission ?? '',
    ]);
    return `## ${name}\n\n${inText(description)}\n\n${table(['Method and path', 'What it does', 'Permission'], rows)}`;
  });
  return `# Operations

Every operation of the API, generated from the schemas that the service validates with. [Rules of the API](../contract.md) explains
what holds for all of them: keys, lists, idempotency keys, rate limits. In the examples, \`$API\` is the address of the service, \`$KEY\` an
account key, \`$APP\` the id of an app, \`$SDK_KEY\` its SDK key, and \`$SESSION\` the cookie of a session.

${sections.join('\n\n')}
`;
}

/** Returns the pages of the API's operations: an overview, and a page for each group of routes. */
export function apiPages(groups: readonly RouteGroup[]): ApiPage[] {
  const document = JSON.parse(JSON.stringify(openApiDocument(groups, PUBLIC_URL))) as Document;
  return [
    { file: 'api/index.md', title: 'Operations', text: overviewPage(groups) },
    ...groups.map((group) => ({
      file: `api/${slugOf(group.name)}.md`,
      title: group.name,
      text: groupPage(group, document),
    })),
  ];
}
