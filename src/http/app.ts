import cors from '@koa/cors';
import { Router } from '@koa/router';
import Koa from 'koa';
import type { Request } from 'koa';
import { inSpan } from '../config/tracing.ts';
import { serveConsole } from './console-files.ts';
import type { HttpContext, HttpState } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';
import { problem } from './middleware/problem.ts';
import { requestId } from './middleware/request-id.ts';
import { requestLog } from './middleware/request-log.ts';
import { addressCaller, limitRate } from './rate-limits.ts';
import type { Route } from './routing/route.ts';
import { routes as allRoutes } from './routes.ts';

/** Targets that browsers may call from any origin. */
const OPEN_TARGET = /^\/(clicks|sdk)([/?]|$)/;

const allowAnyOrigin = cors({
  origin: '*',
  allowMethods: 'POST',
  exposeHeaders: ['Date', 'X-Request-Id', 'Retry-After', 'RateLimit', 'RateLimit-Policy'],
  maxAge: 86_400,
});

/*
 * A middleware that has nothing to do after the others returns what they return: an async function more is two promises more for each
 * request, and the hooks of the Temporal SDK are called for every promise.
 */

/** Responses may contain keys, so they are not cached. */
function safeHeaders(ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> {
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set('Cache-Control', 'no-store');
  return next();
}

/**
 * Announces the end of the connection in a response before the end of the request, whose rest is not read, and, where no proxy
 * shares the connection between clients, in a 429.
 */
function closeUnread({ trustProxy }: HttpDeps) {
  return async (ctx: HttpContext, next: () => Promise<unknown>): Promise<void> => {
    await next();
    if (!ctx.req.complete || (ctx.status === 429 && trustProxy === 0)) ctx.set('Connection', 'close');
  };
}

function openToAnyOrigin(ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> {
  return OPEN_TARGET.test(ctx.url) ? allowAnyOrigin(ctx, next) : next();
}

function limitAddress(ctx: HttpContext, deps: HttpDeps): void {
  limitRate(ctx, deps.rateLimits, 'address', addressCaller(ctx.ip));
}

/** Whether the framework finds a path in the target: it throws for `http://[x/`, and finds none in `x://y`. */
function hasPath(ctx: HttpContext): boolean {
  try {
    return typeof (ctx.path as unknown) === 'string';
  } catch {
    return false;
  }
}

/** Responds with 400 to a target without a path, which every later part of the service reads. Counts towards the limit of the address. */
function refuseWithoutPath(deps: HttpDeps) {
  return (ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> => {
    if (hasPath(ctx)) return next();
    limitAddress(ctx, deps);
    throw new ApiError('invalid_request', { detail: 'The target of the request is not a valid address.' });
  };
}

/** The longest `Accept` header that counts. Browsers send 200 characters; the framework takes time quadratic in its length. */
const ACCEPT_LENGTH = 1_024;

function ignoreLongAccept({ req }: HttpContext, next: () => Promise<unknown>): Promise<unknown> {
  if ((req.headers.accept ?? '').length > ACCEPT_LENGTH) delete req.headers.accept;
  return next();
}

const SEE_DOCS = '`GET /docs` lists every route.';

/** Responds to a request that no route matched: 404, 405, or 204 for OPTIONS. Counts towards the limit of the address. */
async function respondUnrouted(ctx: HttpContext, deps: HttpDeps, routers: Routers): Promise<void> {
  limitAddress(ctx, deps);
  const matched = routers.get(firstSegment(ctx.path))?.stack.filter((layer) => layer.match(ctx.path)) ?? [];
  if (matched.length === 0) {
    throw new ApiError('not_found', { detail: `No route has this path. ${SEE_DOCS}` });
  }
  const methods = new Set([...matched.flatMap((layer) => layer.methods), 'OPTIONS']);
  const allow = [...methods].toSorted().join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw new ApiError('method_not_allowed', {
      detail: `This path takes ${allow}. ${SEE_DOCS}`,
      headers: { Allow: allow },
    });
  }
  ctx.set('Allow', allow);
  ctx.status = 204;
}

/** Whether an error is the service's fault, and not that of the request. */
const isUnexpected = (error: unknown): boolean => !(error instanceof ApiError) || error.status >= 500;

/**
 * Routers by the first segment of their paths. A router compares a request with each of its routes: with all of them in one,
 * that was a twentieth of what a click costs.
 */
type Routers = ReadonlyMap<string, Router<HttpState>>;

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? '';

function createRouters(deps: HttpDeps, routes: readonly Route[]): Routers {
  const routers = new Map<string, Router<HttpState>>();
  for (const { method, path, limitsAddress, run } of routes) {
    const router = routers.get(firstSegment(path)) ?? new Router<HttpState>({ sensitive: true });
    routers.set(firstSegment(path), router);
    router.register(path, [method], (ctx) => {
      ctx.state.route = path;
      if (limitsAddress) limitAddress(ctx, deps);
      const attributes = { 'http.request.method': method, 'http.route': path };
      return inSpan(`${method} ${path}`, attributes, () => run(ctx, deps, ctx.params), isUnexpected);
    });
  }
  return routers;
}

/** Passes a request to the router of its first segment. */
function route(routers: Routers) {
  const middleware = new Map([...routers].map(([segment, router]) => [segment, router.routes()]));
  return (ctx: HttpContext, next: () => Promise<unknown>): Promise<unknown> =>
    middleware.get(firstSegment(ctx.path))?.(ctx as never, next) ?? next();
}

/**
 * The host that a request is for chooses the app. Koa would take `X-Forwarded-Host` behind a proxy, which any client can send
 * where the proxy passes it on. Proxies pass the `Host` header of the client.
 */
const HOST_HEADER: PropertyDescriptor & ThisType<Request> = {
  configurable: true,
  get() {
    return this.get('Host');
  },
};

/** Creates the HTTP application. The caller listens and closes. */
export function createApp(deps: HttpDeps, routes: readonly Route[] = allRoutes): Koa<HttpState> {
  const app = new Koa<HttpState>({ proxy: deps.trustProxy > 0, maxIpsCount: deps.trustProxy });
  Object.defineProperty(app.request, 'host', HOST_HEADER);
  const routers = createRouters(deps, routes);
  app.use(requestId);
  app.use(requestLog(deps.logger, deps.observeRequest));
  app.use(safeHeaders);
  app.use(closeUnread(deps));
  app.use(openToAnyOrigin);
  app.use(problem(deps.logger));
  app.use(ignoreLongAccept);
  app.use(refuseWithoutPath(deps));
  app.use(serveConsole((ctx) => limitAddress(ctx, deps)));
  app.use(route(routers));
  app.use(async (ctx) => await respondUnrouted(ctx, deps, routers));
  // Errors of requests are handled above. An error here is a connection that broke during a response.
  app.on('error', (error: unknown) => deps.logger.debug({ err: error, msg: 'connection failed' }));
  return app;
}
