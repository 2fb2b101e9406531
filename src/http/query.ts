import { parse } from 'node:querystring';
import type { HttpContext } from './context.ts';

/**
 * Returns the parameters of a request's query. Koa's own `ctx.query` takes time quadratic in their number, which anybody
 * can make thousands.
 */
export function readQuery(ctx: Pick<HttpContext, 'querystring'>): Record<string, unknown> {
  return { ...parse(ctx.querystring, '&', '=', { maxKeys: 0 }) };
}
