import { randomUUID } from 'node:crypto';
import type { HttpContext } from '../context.ts';

/** Names the request: in the log, in an error's body, and in a header of whatever is answered. */
export async function requestId(ctx: HttpContext, next: () => Promise<unknown>): Promise<void> {
  ctx.state.requestId = randomUUID();
  ctx.set('X-Request-Id', ctx.state.requestId);
  await next();
}
