import type { Logger } from 'pino';
import type { HttpContext } from '../context.ts';
import type { RequestObserver } from '../deps.ts';

/** Logs one line per request. It shows the route and not the path, and no body, key or address. */
export function requestLog(logger: Logger, observeRequest: RequestObserver = () => {}) {
  return async (ctx: HttpContext, next: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    try {
      await next();
    } finally {
      const ms = performance.now() - startedAt;
      const { requestId, route, accountId, appId } = ctx.state;
      observeRequest({ method: ctx.method, route, status: ctx.status, seconds: ms / 1000 });
      const probe = ctx.status < 400 && (route === '/healthz' || route === '/readyz');
      logger[probe ? 'debug' : 'info']({
        requestId,
        method: ctx.method,
        route: route ?? null,
        status: ctx.status,
        ms: Math.round(ms),
        accountId,
        appId,
        msg: 'request',
      });
    }
  };
}
