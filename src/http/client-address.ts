import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';

let hasWarned = false;

/**
 * Returns the address of the client, or null if it is unknown: the request came through a proxy and no proxy is trusted.
 * The socket's address is then shared by all clients, and a deferred match would credit the wrong click.
 */
export function clientAddress(
  ctx: HttpContext,
  { trustProxy, logger }: Pick<HttpDeps, 'trustProxy' | 'logger'>,
): string | null {
  const isForwarded = ctx.get('X-Forwarded-For') !== '' || ctx.get('Forwarded') !== '';
  if (trustProxy > 0 || !isForwarded) return ctx.ip;
  if (!hasWarned) {
    hasWarned = true;
    logger.warn({
      msg: 'a request came through a proxy that is not trusted, so it gets no deferred match: set TRUST_PROXY to the number of proxies',
    });
  }
  return null;
}
