import { koaBody } from 'koa-body';
import getRawBody from 'raw-body';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';

/** The media types of a JSON body. */
export const JSON_TYPES = ['application/json', '+json'] as const;

/** Returns the error for an exception of `raw-body`. */
function toApiError(error: unknown, limitBytes: number): ApiError {
  const type = typeof error === 'object' && error !== null && 'type' in error ? error.type : undefined;
  return type === 'entity.too.large'
    ? new ApiError('payload_too_large', {
        detail: `The body has more than ${limitBytes} bytes.`,
        cause: error,
      })
    : new ApiError('invalid_request', {
        detail: 'The body is shorter than its Content-Length.',
        cause: error,
      });
}

/** A body whose memory stays reserved until `free` is called. */
export interface HeldBody<T> {
  readonly body: T;
  readonly free: () => void;
}

/** Reads a body and reserves its memory. Throws 400, 413, or 503 when too much memory is in use. */
async function withinBudget<T>(
  ctx: HttpContext,
  { bodyBudget }: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
  read: () => Promise<T>,
): Promise<HeldBody<T>> {
  const free = bodyBudget.reserve(ctx.ip, Math.min(ctx.request.length ?? limitBytes, limitBytes));
  try {
    return { body: await read(), free };
  } catch (error) {
    free();
    throw toApiError(error, limitBytes);
  }
}

/** Returns the bytes of a request's body as they were sent. Throws 400, 413, or 503 when too much memory is in use. */
export async function readBytes(
  ctx: HttpContext,
  deps: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<HeldBody<Buffer>> {
  const { length } = ctx.request;
  return await withinBudget(ctx, deps, limitBytes, () =>
    getRawBody(ctx.req, { limit: limitBytes, ...(length === undefined ? {} : { length }) }),
  );
}

type TextReader = ReturnType<typeof koaBody>;

/** A reader of texts per limit; there are as many limits as kinds of routes. */
const readers = new Map<number, TextReader>();

function readerOf(limitBytes: number): TextReader {
  const known = readers.get(limitBytes);
  if (known !== undefined) return known;
  const reader = koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: [...JSON_TYPES],
    textLimit: limitBytes,
  });
  readers.set(limitBytes, reader);
  return reader;
}

/**
 * Returns the text of a request's body. Throws as `readBytes`. The caller has refused a `Content-Encoding`, which this
 * would decompress.
 */
export async function readText(
  ctx: HttpContext,
  deps: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<string> {
  const { free } = await withinBudget(ctx, deps, limitBytes, () => readerOf(limitBytes)(ctx, async () => {}));
  free();
  const { body } = ctx.request as { body?: unknown };
  return typeof body === 'string' ? body : '';
}
