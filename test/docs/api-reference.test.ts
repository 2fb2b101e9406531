import { describe, expect, test } from '@jest/globals';
import { openApiDocument, openApiPath } from '../../src/http/openapi.ts';
import { routeGroups, routes } from '../../src/http/routes.ts';
import { apiPages, exampleFor, signatureOf } from '../../tools/site/api-reference.ts';
import { describeFields, describeType, inCell, inText } from '../../tools/site/describe-schema.ts';

const pages = apiPages(routeGroups);
const document = JSON.parse(JSON.stringify(openApiDocument(routeGroups, '/'))) as {
  paths: Record<
    string,
    Record<
      string,
      {
        requestBody?: { content: Record<string, { schema: object }> };
        responses: Record<string, { content?: Record<string, { schema: object }> }>;
      }
    >
  >;
};
const operationOf = (method: string, path: string) =>
  document.paths[openApiPath(path)]?.[method.toLowerCase()];
const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);

describe('the API reference of the site', () => {
  test('every operation is on the page of its group, and in the overview with a link to it', () => {
    const [overview, ...groups] = pages;
    expect(groups).toHaveLength(routeGroups.length);
    for (const [index, group] of routeGroups.entries()) {
      for (const route of group.routes) {
        expect(groups[index]?.text).toContain(`\n\n**${signatureOf(route)}**\n\n`);
        expect(overview?.text).toContain(`| ${signatureOf(route)} | [`);
      }
    }
  });

  test.each(named.filter(([, { body }]) => body !== null))(
    'the body of the example of %s is accepted',
    (_name, { method, path, body }) => {
      const schema = operationOf(method, path)?.requestBody?.content['application/json']?.schema ?? {};
      expect(body?.safeParse(exampleFor(schema, document))).toMatchObject({ success: true });
    },
  );

  test.each(named.filter(([, { response }]) => response.schema !== null))(
    'the example of a response of %s matches its schema',
    (_name, { method, path, response }) => {
      const content = operationOf(method, path)?.responses[String(response.status)]?.content;
      const example = exampleFor(content?.['application/json']?.schema ?? {}, document);
      expect(response.schema?.safeParse(example)).toMatchObject({ success: true });
      expect(JSON.stringify(example)).not.toContain('"…"');
    },
  );
});

describe('a described schema', () => {
  test('the fields of variants are described once, and required only if all variants require them', () => {
    const variant = (method: string, field: string) => ({
      properties: {
        method: { const: method },
        recipient: {
          properties: { [field]: { type: 'string', description: `The ${field}.` } },
          required: [field],
        },
      },
      required: ['method', ...(field === 'email' ? ['recipient'] : [])],
    });
    expect(describeFields({ oneOf: [variant('paypal', 'email'), variant('other', 'iban')] }, {})).toEqual([
      { name: 'method', type: '`"paypal"`, `"other"`', isRequired: true, description: '' },
      { name: 'recipient', type: 'object', isRequired: false, description: '' },
      { name: 'recipient.email', type: 'string', isRequired: false, description: 'The email.' },
      { name: 'recipient.iban', type: 'string', isRequired: false, description: 'The iban.' },
    ]);
  });

  test('a list has brackets in the names of its fields, also behind a reference', () => {
    const api = { components: { Row: { type: 'object', properties: { slug: { type: 'string' } } } } };
    const list = { type: 'array', items: { $ref: '#/components/Row' } };
    expect(describeFields(list, api).map(({ name }) => name)).toEqual(['[].slug']);
    const rows = { type: 'object', properties: { rows: list } };
    expect(describeFields(rows, api).map(({ name }) => name)).toEqual(['rows', 'rows[].slug']);
  });

  test.each([
    [{ type: 'string', minLength: 1, maxLength: 200 }, 'string, 1 to 200 characters'],
    [{ type: ['integer', 'null'], minimum: 0, maximum: 90 }, 'integer, 0 to 90 or null'],
    [{ anyOf: [{ type: 'string', format: 'email' }, { type: 'null' }] }, 'string (email) or null'],
    [
      { type: 'array', items: { enum: ['read', 'write'] }, maxItems: 4 },
      'array of `"read"`, `"write"`, at most 4',
    ],
    [{}, 'any'],
  ])('the type of %j is in words', (schema, words) => {
    expect(describeType(schema, {})).toBe(words);
  });

  test('a description is text: neither HTML nor an expression nor the end of a cell', () => {
    expect(inText('`a <b> {{c}}` <b> {{c}}')).toBe('`a <b> {{c}}` &lt;b> &#123;&#123;c}}');
    expect(inCell('a | b\n\nc')).toBe('a \\| b c');
  });
});
