import type { Logger } from 'pino';
import type { HttpContext } from '../context.ts';

/** One line per request. It shows the route instead of the path, and neither body, key nor address. */
export function requestLog(logger: Logger) {
  return async (ctx: HttpContext, next: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    try {
      await next();
    } finally {
      const { requestId, route, accountId, appId } = ctx.state;
      const probe = ctx.status < 400 && (route === '/healthz' || route === '/readyz');
      logger[probe ? 'debug' : 'info']({
        requestId,
        method: ctx.method,
        route: route ?? null,
        status: ctx.status,
        ms: Math.round(performance.now() - startedAt),
        accountId,
        appId,
        msg: 'request',
      });
    }
  };
}
