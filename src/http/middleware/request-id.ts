import { randomUUID } from 'node:crypto';
import type { HttpContext } from '../context.ts';

/** Gives the request an id, which is in the log, in the body of an error, and in a header of every response. */
export function requestId(ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> {
  ctx.state.requestId = randomUUID();
  ctx.set('X-Request-Id', ctx.state.requestId);
  return next();
}
