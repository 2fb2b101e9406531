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
}

/** Returns a value that matches a JSON schema, built from its examples. Throws for a text without an example. */
export function exampleOf(schema: object): unknown {
  const { type, examples, enum: values, anyOf, properties, items, minimum, ...rest } = schema as Schema;
  if (examples !== undefined && examples.length > 0) return examples[0];
  if ('default' in rest) return rest.default;
  if ('const' in rest) return rest.const;
  if (values !== undefined) return values[0];
  const [first] = anyOf ?? [];
  if (first !== undefined) return exampleOf(first);
  switch (typeof type === 'string' ? type : type?.[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, property]) => [name, exampleOf(property)]),
      );
    case 'array':
      return items === undefined ? [] : [exampleOf(items)];
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return minimum ?? 0;
    default:
      throw new Error(`no example: ${JSON.stringify(schema)}`);
  }
}
