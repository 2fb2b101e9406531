import { visit } from 'jsonc-parser';
import { exceededJsonLimit } from '../domain/json-size.ts';
import type { JsonLimits } from '../domain/json-size.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';
import { JSON_TYPES, readText } from './read-body.ts';

/** A JSON object or array. Other JSON values are no body of this API. */
const JSON_CONTAINER = /^[ \t\r\n]*[{[]/;

/** More than the largest bulk call has. An unknown field costs more than one that the schema has. */
export const BODY_LIMITS: JsonLimits = { values: 5_000, depth: 32 };

/** The value of a body, and the text that it was parsed from. */
export interface ParsedBody {
  readonly value: unknown;
  readonly text: string;
}

/** Ends the search for errors at the first one. */
class FirstError extends Error {
  readonly offset: number;

  constructor(offset: number) {
    super();
    this.offset = offset;
  }
}

function throwFirst(_code: unknown, offset: number): never {
  throw new FirstError(offset);
}

/** Returns the offset of the first error in a JSON text, or null if it cannot be found. */
function offsetOfError(text: string): number | null {
  try {
    visit(text, { onError: throwFirst }, { disallowComments: true });
    return null;
  } catch (error) {
    // The parser is recursive: deep nesting overflows its stack.
    return error instanceof FirstError ? error.offset : null;
  }
}

/** The longest text in which an error is searched for, characters. The search takes many times as long as parsing. */
const SEARCHED_LENGTH = 64 * 1024;

/**
 * Returns the position of the first error in a JSON text, such as `line 2, column 5`. Null if it cannot be found, or if the text is
 * too long to search.
 */
function positionOfError(text: string): string | null {
  if (text.length > SEARCHED_LENGTH) return null;
  const offset = offsetOfError(text);
  if (offset === null) return null;
  let line = 1;
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1 && end < offset; end = text.indexOf('\n', start)) {
    line += 1;
    start = end + 1;
  }
  return `line ${line}, column ${offset - start + 1}`;
}

function invalidJson(text: string, cause?: unknown): ApiError {
  const position = positionOfError(text);
  const message = `Must be a valid JSON object.${position === null ? '' : ` The first error is at ${position}.`}`;
  return new ApiError('invalid_request', { errors: [{ path: '', message }], cause });
}

/** Throws 400 for a body with so many values, or so deep ones, that parsing and checking it would take long. */
function refuseLarge(text: string): void {
  const limit = exceededJsonLimit(text, BODY_LIMITS);
  if (limit === null) return;
  const message =
    limit === 'values'
      ? `Must have at most ${BODY_LIMITS.values} values. Split a bulk call.`
      : `Must be nested at most ${BODY_LIMITS.depth} levels deep.`;
  throw new ApiError('invalid_request', { errors: [{ path: '', message }] });
}

/**
 * Throws 415 for a compressed body. Decompressing one would take time and memory that do not depend on the size of the
 * request.
 */
function refuseEncoding(ctx: HttpContext): void {
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return;
  throw new ApiError('unsupported_media_type', {
    detail: 'The body has a Content-Encoding. Send it without one.',
  });
}

/** Returns the JSON of the request's body, or undefined if it has none. Throws 400, 413, 415 or 503. */
export async function parseBody(
  ctx: HttpContext,
  deps: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<ParsedBody | undefined> {
  if (ctx.get('Content-Length') === '0') return undefined;
  const isJson = ctx.is([...JSON_TYPES]);
  if (isJson === null) return undefined;
  if (isJson === false)
    throw new ApiError('unsupported_media_type', {
      detail: 'The Content-Type is not JSON. Send application/json.',
    });
  refuseEncoding(ctx);
  const text = await readText(ctx, deps, limitBytes);
  if (text === '') return undefined;
  if (!JSON_CONTAINER.test(text)) throw invalidJson(text);
  refuseLarge(text);
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    throw invalidJson(text, error);
  }
}
