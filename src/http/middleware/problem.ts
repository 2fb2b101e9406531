import type { Logger } from 'pino';
import { SecretUnreadable } from '../../config/secret-box.ts';
import { DatabaseUnavailable } from '../../db/sql.ts';
import type { HttpContext } from '../context.ts';
import { ApiError } from '../errors.ts';
import { problemReply, sendReply } from '../reply.ts';

/** How long a caller should wait for a database that is away, seconds. */
const RETRY_AFTER_SECONDS = 2;
/** The same for a key that an operator has to put back into SECRETS_KEY; the log names it. */
const KEY_RETRY_AFTER_SECONDS = 60;

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DatabaseUnavailable) {
    return new ApiError('unavailable', {
      headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
      cause: error,
    });
  }
  if (error instanceof SecretUnreadable) {
    return new ApiError('unavailable', {
      detail: 'Something that was stored encrypted can not be opened at the moment.',
      headers: { 'Retry-After': String(KEY_RETRY_AFTER_SECONDS) },
      cause: error,
    });
  }
  return new ApiError('internal_error', { cause: error });
}

/** Turns whatever is thrown into a problem document (RFC 9457). What is not an `ApiError` is logged and not shown. */
export function problem(logger: Logger) {
  return async (ctx: HttpContext, next: () => Promise<unknown>): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const failure = toApiError(error);
      const { status, code, cause } = failure;
      const { requestId, route } = ctx.state;
      // A service that is not ready yet says so in its answer; it is no failed request.
      if (status >= 500 && code !== 'not_ready') {
        logger[status === 500 || cause instanceof SecretUnreadable ? 'error' : 'warn']({
          err: cause ?? error,
          requestId,
          route,
          code,
          msg: 'request failed',
        });
      }
      sendReply(ctx, problemReply(failure, requestId));
    }
  };
}
