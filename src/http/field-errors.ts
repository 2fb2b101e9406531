import * as z from 'zod';
import type { FieldError } from './errors.ts';

type RawIssue = z.core.$ZodRawIssue;

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'an array',
  null: 'null',
};

const FORMATS: Readonly<Record<string, string>> = {
  email: 'an e-mail address',
  guid: 'a UUID',
  uuid: 'a UUID',
};

/** What the size of a value of this origin counts. */
const UNITS: Readonly<Record<string, string>> = { string: 'characters', array: 'items' };

function sizeMessage(origin: string, relation: 'at least' | 'at most', bound: number | bigint): string {
  const unit = UNITS[origin];
  return unit === undefined
    ? `Must be ${relation} ${bound}.`
    : `Must have ${relation} ${bound} ${Number(bound) === 1 ? unit.slice(0, -1) : unit}.`;
}

/** Returns the names of the fields of the schema that found an issue. */
function fieldNames({ inst }: RawIssue): string {
  return inst instanceof z.ZodObject ? Object.keys(inst.shape).join(', ') : '';
}

/** Returns the values of the field by which a union tells its members apart. */
function valuesOf({ def }: z.ZodDiscriminatedUnion): string[] {
  return def.options.flatMap((option) => {
    const field = option instanceof z.ZodObject ? (option.shape[def.discriminator] as unknown) : undefined;
    return field instanceof z.ZodLiteral ? [...field.values].map(String) : [];
  });
}

/** Returns the message of an issue whose schema has no message of its own. */
function messageOf(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'Required.';
      return `Must be ${TYPES[issue.expected] ?? issue.expected}.`;
    case 'invalid_value':
      if (issue.input === undefined) return 'Required.';
      return `Must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map(String).join(', ')}.`;
    case 'invalid_format':
      return FORMATS[issue.format] === undefined ? undefined : `Must be ${FORMATS[issue.format]}.`;
    case 'too_small':
      return sizeMessage(issue.origin, 'at least', issue.minimum);
    case 'too_big':
      return sizeMessage(issue.origin, 'at most', issue.maximum);
    case 'unrecognized_keys': {
      const names = fieldNames(issue);
      return names === '' ? 'Unknown field.' : `Unknown field. Allowed: ${names}.`;
    }
    case 'invalid_union': {
      if (!(issue.inst instanceof z.ZodDiscriminatedUnion)) return undefined;
      const values = valuesOf(issue.inst);
      return issue.note === undefined || values.length === 0
        ? undefined
        : `Must be one of ${values.join(', ')}.`;
    }
    default:
      return undefined;
  }
}

/** The options with which every request is parsed: messages in the words of this API. */
export const PARSE_OPTIONS = { error: messageOf };

/** How many invalid fields a response names at most, so that it does not grow with what was sent. */
export const MAX_ERRORS = 100;

/** A longer path is cut off. Names of unknown fields have any length. */
const PATH_LENGTH = 500;

function* pathsOf(error: z.ZodError): Generator<FieldError> {
  for (const issue of error.issues) {
    const path = issue.path.map(String);
    const { message } = issue;
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) yield { path: [...path, key].join('.').slice(0, PATH_LENGTH), message };
    } else yield { path: path.join('.').slice(0, PATH_LENGTH), message };
  }
}

/** Returns the first hundred errors of a failed parse, one for each field, and each unknown field under its own path. */
export function fieldErrors(error: z.ZodError | undefined): FieldError[] {
  const errors: FieldError[] = [];
  if (error === undefined) return errors;
  for (const one of pathsOf(error)) {
    errors.push(one);
    if (errors.length === MAX_ERRORS) break;
  }
  return errors;
}

/** Returns an error for each parameter of a query that its schema does not have. */
export function findUnknownParameters(schema: z.ZodType | undefined, query: object): FieldError[] {
  const names = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  const allowed = names.length === 0 ? 'This route has no parameters.' : `Allowed: ${names.join(', ')}.`;
  return Object.keys(query)
    .filter((name) => !names.includes(name))
    .slice(0, MAX_ERRORS)
    .map((path) => ({ path: path.slice(0, PATH_LENGTH), message: `Unknown parameter. ${allowed}` }));
}
