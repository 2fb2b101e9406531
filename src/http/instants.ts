import * as z from 'zod';
import { FIRST_INSTANT, instantProblem } from '../domain/instants.ts';
import { LAST_INSTANT } from '../domain/time.ts';
import { parseInstant } from '../config/parse-instant.ts';
import type { FieldError } from './errors.ts';
import { describedAs } from './fields.ts';

/** The instants in requests. They are compared with the clock after parsing, which schemas cannot do. */
const instants = z.registry<{ readonly takesZero: boolean }>();

/** An instant in a body. */
export function instantInBody(description: string) {
  return z
    .int('Must be whole epoch milliseconds.')
    .min(0, 'Must be whole epoch milliseconds.')
    .max(LAST_INSTANT, 'Must be whole epoch milliseconds.')
    .meta({
      description: `${description} Epoch milliseconds.`,
      examples: [1_781_524_800_000],
      override: { minimum: FIRST_INSTANT },
    })
    .register(instants, { takesZero: false });
}

const EXPECTED_IN_QUERY =
  'Must be epoch milliseconds or ISO 8601 with an offset, such as 2026-01-31T12:00:00Z.';

/** An instant in a query. */
export function instantInQuery(example: number, description: string) {
  return (
    z
      .string()
      // A `+` in a query that is not encoded arrives as a space.
      .transform((text) => parseInstant(text.replace(/(?<=T\S*) (?=\d\d:\d\d$)/, '+')))
      .refine((at) => !Number.isNaN(at), EXPECTED_IN_QUERY)
      .meta({
        ...describedAs({
          anyOf: [
            { type: 'integer', minimum: 0, maximum: LAST_INSTANT },
            { type: 'string', format: 'date-time' },
          ],
          description: `${description} Epoch milliseconds, or ISO 8601 with an offset. 0 is the beginning.`,
          examples: [example],
        }),
      })
      .register(instants, { takesZero: true })
  );
}

/** The parameters `from` (inclusive) and `to` (exclusive) of a query. */
export const fromTo = (from: string, to: string) => ({
  from: instantInQuery(1_780_315_200_000, from).optional(),
  to: instantInQuery(1_781_524_800_000, to).optional(),
});

function withoutWrappers(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable) inner = inner.unwrap();
  return inner;
}

interface InstantField {
  readonly path: string;
  readonly takesZero: boolean;
}

/** The instants of each schema, found once: looking at every field of each request is a twentieth of what a click costs. */
const fieldsOf = new WeakMap<z.ZodType, readonly InstantField[]>();

function instantFields(schema: z.ZodType): readonly InstantField[] {
  const known = fieldsOf.get(schema);
  if (known !== undefined) return known;
  const shape = schema instanceof z.ZodObject ? (schema.shape as Record<string, z.core.$ZodType>) : {};
  const fields = Object.entries(shape).flatMap(([path, field]) => {
    const kind = instants.get(withoutWrappers(field));
    return kind === undefined ? [] : [{ path, ...kind }];
  });
  fieldsOf.set(schema, fields);
  return fields;
}

/** Returns an error for each field of a parsed query or body whose instant is too early or too late. */
export function findImplausibleInstants(schema: z.ZodType, parsed: unknown, now: number): FieldError[] {
  return instantFields(schema).flatMap(({ path, takesZero }) => {
    const at = (parsed as Readonly<Record<string, unknown>>)[path];
    const message = typeof at === 'number' ? instantProblem(at, { now, takesZero }) : null;
    return message === null ? [] : [{ path, message }];
  });
}
