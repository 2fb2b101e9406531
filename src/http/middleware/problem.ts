import type { Logger } from 'pino';
import { SecretUnreadable } from '../../config/secret-box.ts';
import { faultOf } from '../../db/errors.ts';
import type { HttpContext } from '../context.ts';
import { ApiError } from '../errors.ts';
import { problemReply, sendReply } from '../reply.ts';

/** When a caller should retry after the database was unavailable, seconds. */
const RETRY_AFTER_SECONDS = 2;
/** The same if an operator has to help. */
const OPERATOR_RETRY_AFTER_SECONDS = 15;
/** When a caller should retry after a key was missing in SECRETS_KEY, which an operator must restore, seconds. */
const KEY_RETRY_AFTER_SECONDS = 60;

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const fault = faultOf(error);
  if (fault !== null) {
    const seconds = fault.remedy === 'wait' ? OPERATOR_RETRY_AFTER_SECONDS : RETRY_AFTER_SECONDS;
    return new ApiError('unavailable', { headers: { 'Retry-After': String(seconds) }, cause: error });
  }
  if (error instanceof SecretUnreadable) {
    return new ApiError('unavailable', {
      detail:
        'The service lacks an encryption key of stored data. Ask the operator to restore the one that its log names.',
      headers: { 'Retry-After': String(KEY_RETRY_AFTER_SECONDS) },
      cause: error,
    });
  }
  return new ApiError('internal_error', { cause: error });
}

/** Turns every error into a problem document (RFC 9457). Logs the cause of a 5xx and does not show it. */
export function problem(logger: Logger) {
  return async (ctx: HttpContext, next: () => Promise<unknown>): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const failure = toApiError(error);
      const { status, code, cause } = failure;
      const { requestId, route } = ctx.state;
      // `not_ready` reports a state and is no failure.
      if (status >= 500 && code !== 'not_ready') {
        const fault = faultOf(cause ?? error);
        const lacksKey = cause instanceof SecretUnreadable;
        const reason = fault?.problem ?? (lacksKey ? cause.message : undefined);
        const needsOperator = status === 500 || lacksKey || fault?.remedy === 'wait';
        logger[needsOperator ? 'error' : 'warn']({
          err: cause ?? error,
          // Lines with a problem are counted: they would fill the disk of which they say that it is full.
          ...(reason === undefined ? {} : { problem: reason }),
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
