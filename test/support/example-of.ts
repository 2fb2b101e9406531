interface Schema {
  readonly type?: string | readonly string[];
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly $ref?: string;
}

/** Returns the part of a document that a reference such as `#/components/schemas/Link` names. */
function referenced(document: object, reference: string): object {
  const found = reference
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name],
      document,
    );
  if (typeof found !== 'object' || found === null) throw new Error(`${reference} is not in the document`);
  return found;
}

/**
 * Returns a value that matches a JSON schema, built from its examples. `document` is where its references lead. Throws for
 * a text without an example.
 */
export function exampleOf(schema: object, document: object = schema): unknown {
  const { type, examples, enum: values, anyOf, properties, items, minimum, $ref, ...rest } = schema as Schema;
  if ($ref !== undefined) return exampleOf(referenced(document, $ref), document);
  if (examples !== undefined && examples.length > 0) return examples[0];
  if ('default' in rest) return rest.default;
  if ('const' in rest) return rest.const;
  if (values !== undefined) return values[0];
  const [first] = anyOf ?? [];
  if (first !== undefined) return exampleOf(first, document);
  switch (typeof type === 'string' ? type : type?.[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, property]) => [name, exampleOf(property, document)]),
      );
    case 'array':
      return items === undefined ? [] : [exampleOf(items, document)];
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return minimum ?? 0;
    default:
      throw new Error(`no example: ${JSON.stringify(schema)}`);
  }
}
