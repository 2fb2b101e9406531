import { koaBody } from 'koa-body';
import type { HttpContext } from '../context.ts';
import { ApiError } from '../errors.ts';

/** A bulk call of a hundred rows with long addresses fits well. */
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

/** The JSON value of the request's body; undefined when it has none. */
export async function parseBody(ctx: HttpContext): Promise<unknown> {
  if (ctx.get('Content-Length') === '0') return undefined;
  const isJson = ctx.is(JSON_TYPES);
  if (isJson === null) return undefined;
  if (isJson === false) throw new ApiError('unsupported_media_type', { detail: 'Send application/json.' });
  try {
    await parse(ctx, async () => {});
  } catch (error) {
    const status = statusOf(error);
    if (status === 413)
      throw new ApiError('payload_too_large', { detail: `At most ${LIMIT_BYTES} bytes.`, cause: error });
    if (status === 415)
      throw new ApiError('unsupported_media_type', { detail: 'Unknown content encoding.', cause: error });
    // Broken JSON, a broken compression, fewer bytes than announced: all of it is the caller's.
    throw new ApiError('invalid_request', {
      errors: [{ path: '', message: 'The body is not valid JSON (an object).' }],
      cause: error,
    });
  }
  return (ctx.request as { body?: unknown }).body;
}
