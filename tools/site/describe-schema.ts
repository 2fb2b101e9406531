import { LAST_INSTANT } from '../../src/domain/time.ts';

/** A JSON schema, as OpenAPI 3.1 has it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

/** A field of a body, under the names of the objects that it is in: `rows[].slug`. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

/** Returns a text in which only Markdown is markup: no HTML and no expressions of Vue. Code stays as it is. */
export function inText(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;'),
    )
    .join('');
}

/** Returns a text as a cell of a table. */
export const inCell = (text: string): string =>
  inText(text)
    .replaceAll('|', '\\|')
    .replaceAll(/\s*\n\s*/g, ' ');

function resolve(schema: Schema, document: object): Schema {
  if (schema.$ref === undefined) return schema;
  const target = schema.$ref
    .split('/')
    .slice(1)
    .reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], document);
  if (target === undefined) throw new Error(`${schema.$ref} is not in the document`);
  return resolve(target as Schema, document);
}

const variantsOf = ({ anyOf, oneOf, allOf }: Schema): readonly Schema[] => anyOf ?? oneOf ?? allOf ?? [];

const code = (value: unknown): string => `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``;

/** Returns the limits of a text or a number in words, such as `, 1 to 200 characters`. */
function limitsOf({ minimum, maximum, minLength, maxLength, format }: Schema): string {
  if (format !== undefined) return ` (${format})`;
  if (maxLength !== undefined) {
    return (minLength ?? 0) === 0
      ? `, at most ${maxLength} characters`
      : `, ${minLength} to ${maxLength} characters`;
  }
  // Its description says that an instant is one.
  if (maximum === LAST_INSTANT) return '';
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`;
  if (minimum !== undefined && minimum !== 0) return `, at least ${minimum}`;
  return '';
}

/** Joins the types of variants. Those that are one value each are a list of values, like an enum. */
function inOneOf(given: readonly string[]): string {
  const types = [...new Set(given.flatMap((type) => type.split(' or ')))];
  const values = types.filter((type) => type.startsWith('`')).flatMap((type) => type.split(', '));
  const others = types.filter((type) => !type.startsWith('`'));
  return [[...new Set(values)].join(', '), ...others].filter((type) => type !== '').join(' or ');
}

/** Returns the type of a schema in words, as a cell of a table. */
export function describeType(given: Schema, document: object): string {
  const schema = resolve(given, document);
  if ('const' in schema) return code(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => code(value)).join(', ');
  const variants = variantsOf(schema);
  if (variants.length > 0) return inOneOf(variants.map((variant) => describeType(variant, document)));
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  if (types.length === 0) return schema.properties === undefined ? 'any' : 'object';
  return types
    .map((type) => {
      if (type === 'array') {
        const most = schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`;
        const items = describeType(schema.items ?? {}, document);
        return `array of ${items === 'object' ? 'objects' : items}${most}`;
      }
      return `${type}${['string', 'integer', 'number'].includes(type) ? limitsOf(schema) : ''}`;
    })
    .join(' or ');
}

interface Shapes {
  /** What is between the name of a field and the names of the fields in it. */
  readonly suffix: string;
  readonly objects: readonly Schema[];
}

/** Returns the objects that a value of a schema may be, or that are in it. */
function shapesOf(given: Schema, document: object): Shapes {
  const schema = resolve(given, document);
  const variants = variantsOf(schema);
  if (variants.length > 0) {
    const all = variants.map((variant) => shapesOf(variant, document));
    const objects = all.flatMap((shapes) => shapes.objects);
    return { suffix: all.find((shapes) => shapes.objects.length > 0)?.suffix ?? '', objects };
  }
  if (schema.items !== undefined) {
    const { suffix, objects } = shapesOf(schema.items, document);
    return { suffix: `[]${suffix}`, objects };
  }
  if (schema.properties !== undefined) return { suffix: '', objects: [schema] };
  if (typeof schema.additionalProperties === 'object') {
    const { suffix, objects } = shapesOf(schema.additionalProperties, document);
    return { suffix: `.*${suffix}`, objects };
  }
  return { suffix: '', objects: [] };
}

const MOST_LEVELS = 6;

/** Returns the fields of a schema and of the objects in it. Variants of an object are described together. */
export function describeFields(schema: Schema, document: object, prefix = '', level = 0): Field[] {
  const { suffix, objects } = shapesOf(schema, document);
  if (level === MOST_LEVELS) return [];
  const place = `${prefix}${suffix}`;
  const start = place === '' ? '' : `${place}.`;
  const names = [...new Set(objects.flatMap(({ properties = {} }) => Object.keys(properties)))];
  return names.flatMap((name) => {
    const fields = objects.flatMap(({ properties = {} }) => properties[name] ?? []);
    const texts = fields.map((field) => field.description ?? resolve(field, document).description ?? '');
    const isRequired = objects.every((object) => object.required?.includes(name) ?? false);
    const inner: Schema = fields.length === 1 ? (fields[0] ?? {}) : { anyOf: fields };
    return [
      {
        name: `${start}${name}`,
        type: inOneOf(fields.map((field) => describeType(field, document))),
        isRequired,
        description: [...new Set(texts.filter((text) => text !== ''))].join(' '),
      },
      ...describeFields(inner, document, `${start}${name}`, level + 1),
    ];
  });
}
