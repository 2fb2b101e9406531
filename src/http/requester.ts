import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';

let wasTold = false;

/**
 * The address of whoever sent the request, or null when it can't be known: the request came through a proxy, and no
 * proxy is trusted. The socket's address would then be everybody's, and a deferred match would pay whoever comes next.
 */
export function requesterAddress(
  ctx: HttpContext,
  { trustProxy, logger }: Pick<HttpDeps, 'trustProxy' | 'logger'>,
): string | null {
  const isForwarded = ctx.get('X-Forwarded-For') !== '' || ctx.get('Forwarded') !== '';
  if (trustProxy > 0 || !isForwarded) return ctx.ip;
  if (!wasTold) {
    wasTold = true;
    logger.warn({
      msg: 'a request came through a proxy: set TRUST_PROXY to the number of proxies, until then there is no deferred match for such requests',
    });
  }
  return null;
}
