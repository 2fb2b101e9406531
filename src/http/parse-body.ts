import { parse as parseTolerantly } from 'jsonc-parser';
import type { ParseError } from 'jsonc-parser';
import { koaBody } from 'koa-body';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/** Enough for a bulk call of a hundred rows with long addresses. */
const LIMIT_BYTES = 1024 * 1024;

const JSON_TYPES = ['application/json', '+json'];

const parse = koaBody({
  json: true,
  jsonTypes: JSON_TYPES,
  jsonLimit: LIMIT_BYTES,
  text: false,
  urlencoded: false,
  multipart: false,
});

function statusOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
}

/** Returns the text that could not be parsed as JSON, or undefined for any other error. */
function invalidText(error: unknown): string | undefined {
  if (!(error instanceof SyntaxError) || !('body' in error)) return undefined;
  return typeof error.body === 'string' ? error.body : undefined;
}

/** Returns the position of the first error in a JSON text, such as `line 2, column 5`, or null if it cannot be found. */
function positionOfError(text: string): string | null {
  const errors: ParseError[] = [];
  try {
    parseTolerantly(text, errors, { disallowComments: true });
  } catch {
    // The parser is recursive: deep nesting overflows its stack.
    return null;
  }
  const [first] = errors;
  if (first === undefined) return null;
  const lines = text.slice(0, first.offset).split('\n');
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}

function invalidJsonMessage(error: unknown): string {
  const text = invalidText(error);
  const position = text === undefined ? null : positionOfError(text);
  return `Must be a valid JSON object.${position === null ? '' : ` The first error is at ${position}.`}`;
}

/** Returns the JSON value of the request's body, or undefined if it has none. Throws 400, 413 or 415. */
export async function parseBody(ctx: HttpContext): Promise<unknown> {
  if (ctx.get('Content-Length') === '0') return undefined;
  const isJson = ctx.is(JSON_TYPES);
  if (isJson === null) return undefined;
  if (isJson === false)
    throw new ApiError('unsupported_media_type', {
      detail: 'The Content-Type is not JSON. Send application/json.',
    });
  try {
    await parse(ctx, async () => {});
  } catch (error) {
    const status = statusOf(error);
    if (status === 413)
      throw new ApiError('payload_too_large', {
        detail: `The body has more than ${LIMIT_BYTES} bytes.`,
        cause: error,
      });
    if (status === 415)
      throw new ApiError('unsupported_media_type', {
        detail: 'The Content-Encoding is not supported. Send gzip, deflate, br or identity.',
        cause: error,
      });
    // Invalid JSON, invalid compression or fewer bytes than announced.
    throw new ApiError('invalid_request', {
      errors: [{ path: '', message: invalidJsonMessage(error) }],
      cause: error,
    });
  }
  return (ctx.request as { body?: unknown }).body;
}
