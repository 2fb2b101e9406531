interface Schema {
  readonly type?: string | readonly string[];
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
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
 * Returns a value that matches a JSON schema, built from its examples. `document` is where its references lead. A text without an
 * example becomes `otherwise`; without that, it throws.
 */
export function exampleOf(schema: object, document: object = schema, otherwise?: string): unknown {
  const {
    type,
    examples,
    enum: values,
    anyOf,
    oneOf,
    properties,
    items,
    minimum,
    $ref,
    ...rest
  } = schema as Schema;
  const inner = (part: object) => exampleOf(part, document, otherwise);
  if ($ref !== undefined) return inner(referenced(document, $ref));
  if (examples !== undefined && examples.length > 0) return examples[0];
  if ('default' in rest) return rest.default;
  if ('const' in rest) return rest.const;
  if (values !== undefined) return values[0];
  const [first] = anyOf ?? oneOf ?? [];
  if (first !== undefined) return inner(first);
  switch (typeof type === 'string' ? type : type?.[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, property]) => [name, inner(property)]),
      );
    case 'array':
      return items === undefined ? [] : [inner(items)];
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return minimum ?? 0;
    default:
      if (otherwise !== undefined) return otherwise;
      throw new Error(`no example: ${JSON.stringify(schema)}`);
  }
}
