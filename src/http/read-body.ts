import getRawBody from 'raw-body';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';

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

/** Returns the bytes of a request's body as they were sent. Throws 400, 413, or 503 when too much memory is in use. */
export async function readBody(
  ctx: HttpContext,
  { bodyBudget }: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<Buffer> {
  const length = ctx.request.length;
  const free = bodyBudget.reserve(ctx.ip, Math.min(length ?? limitBytes, limitBytes));
  try {
    return await getRawBody(ctx.req, { limit: limitBytes, ...(length === undefined ? {} : { length }) });
  } catch (error) {
    throw toApiError(error, limitBytes);
  } finally {
    free();
  }
}
