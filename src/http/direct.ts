import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { HttpContext, HttpState, Middleware } from './context.ts';
import type { Params } from './routing/read-call.ts';
import type { Route } from './routing/route.ts';

/*
 * Clicks, redirects and calls of the SDK come by the thousand, and the framework's context, router and chain of middleware cost as much
 * as the rest of such a call. Their routes are found here and get a context of their own. What is done for them is the same: the
 * middleware and `runRoute` of `app.ts`. What looks unusual goes to the framework.
 */

/** The paths, and the targets, of what is served here. */
const DIRECT_PATH = /^\/(clicks|sdk|l)(?=[/?]|$)/;
/** A target that a path and a query can be cut from. Any other one is left to the framework. */
const PLAIN_TARGET = /^(?<path>\/[\w\-./~]*)(?:\?(?<query>[^#\s]*))?$/;

/** A route, and the parameters in the path of a request. */
interface Found {
  readonly route: Route;
  readonly params: Params;
  readonly path: string;
  readonly querystring: string;
}

/** Returns the parameters if a path has the form of a declared one; null if not. */
function paramsOf(declared: readonly string[], segments: readonly string[]): Params | null {
  if (declared.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, name] of declared.entries()) {
    const segment = segments[index] ?? '';
    if (name.startsWith(':') && segment !== '') params[name.slice(1)] = segment;
    else if (name !== segment) return null;
  }
  return params;
}

/** Returns a function that finds the route of a request among those that are served here; null for all others. */
export function findDirect(routes: readonly Route[]): (request: IncomingMessage) => Found | null {
  const candidates = routes
    .filter(({ path }) => DIRECT_PATH.test(path))
    .map((route) => ({ route, declared: route.path.split('/') }));
  return ({ method, url = '' }) => {
    if (!DIRECT_PATH.test(url)) return null;
    const { path, query = '' } = PLAIN_TARGET.exec(url)?.groups ?? {};
    if (path === undefined) return null;
    const segments = path.split('/');
    for (const { route, declared } of candidates) {
      if (route.method !== method) continue;
      const params = paramsOf(declared, segments);
      if (params !== null) return { route, params, path, querystring: query };
    }
    return null;
  };
}

/** The context of a request that is served here. What such calls seldom need is asked of the framework's context. */
class DirectContext implements HttpContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly querystring: string;
  readonly state: HttpState = { requestId: '' };
  status = 404;
  body: unknown = '';
  readonly #isBehindProxy: boolean;
  readonly #createContext: () => Context;
  #context: Context | null = null;

  constructor(
    { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
    { path, querystring }: Found,
    {
      isBehindProxy,
      createContext,
    }: { readonly isBehindProxy: boolean; readonly createContext: () => Context },
  ) {
    this.req = req;
    this.res = res;
    this.path = path;
    this.querystring = querystring;
    this.#isBehindProxy = isBehindProxy;
    this.#createContext = createContext;
  }

  /** The framework's context of the request, for the few that need it. */
  get #koa(): Context {
    return (this.#context ??= this.#createContext());
  }

  get method() {
    return this.req.method ?? '';
  }

  get url() {
    return this.req.url ?? '';
  }

  get headers() {
    return this.req.headers;
  }

  get ip() {
    return this.#isBehindProxy ? this.#koa.ip : (this.req.socket.remoteAddress ?? '');
  }

  get hostname() {
    return this.#koa.hostname;
  }

  get cookies() {
    return this.#koa.cookies;
  }

  get request() {
    const length = Number.parseInt(this.get('Content-Length'), 10);
    return { length: Number.isNaN(length) ? undefined : length };
  }

  get(name: string): string {
    return (this.req.headers[name.toLowerCase()] as string | undefined) ?? '';
  }

  set(nameOrHeaders: string | Readonly<Record<string, string>>, value = ''): void {
    if (typeof nameOrHeaders === 'string') this.res.setHeader(nameOrHeaders, value);
    else for (const [name, text] of Object.entries(nameOrHeaders)) this.res.setHeader(name, text);
  }

  vary(name: string): void {
    if (this.res.hasHeader('Vary')) this.#koa.vary(name);
    else this.res.setHeader('Vary', name);
  }

  is(types: string[]) {
    const isPlainJson =
      this.req.headers['content-type'] === 'application/json' && types[0] === 'application/json';
    return isPlainJson && this.req.headers['content-length'] !== undefined
      ? 'application/json'
      : this.#koa.is(types);
  }

  accepts(...types: string[]) {
    return this.#koa.accepts(...types);
  }

  acceptsEncodings(...encodings: string[]) {
    return this.#koa.acceptsEncodings(...encodings);
  }

  redirect(url: string): void {
    this.status = 302;
    this.res.setHeader('Location', url);
  }

  /** Sends a 500 if no response was begun, as the framework does for an error of the middleware itself. */
  fail(): void {
    if (this.res.headersSent) this.res.destroy();
    else this.res.writeHead(500, { 'Content-Length': 0, Connection: 'close' }).end();
  }

  /** Sends the response. */
  end(): void {
    const { res, status } = this;
    if (res.destroyed || res.headersSent) return;
    const body = this.body as string | Buffer;
    res.setHeader('Content-Length', Buffer.byteLength(body));
    res.writeHead(status);
    res.end(body);
  }
}

export interface DirectDeps {
  readonly isBehindProxy: boolean;
  /** Creates the framework's context of a request. */
  readonly createContext: (req: IncomingMessage, res: ServerResponse) => Context;
  /** What is done around every route. It turns each error into a response. */
  readonly middleware: readonly Middleware[];
  readonly runRoute: (route: Route, ctx: HttpContext, params: Params) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Returns a function that serves a request if its route is one of the frequent ones, and returns whether it is. */
export function serveDirectly(
  routes: readonly Route[],
  { isBehindProxy, createContext, middleware, runRoute, onError }: DirectDeps,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  const find = findDirect(routes);
  const around = middleware.reduceRight<(ctx: HttpContext, last: () => Promise<unknown>) => Promise<unknown>>(
    (next, one) => async (ctx, last) => await one(ctx, async () => await next(ctx, last)),
    async (_, last) => await last(),
  );
  return (req, res) => {
    const found = find(req);
    if (found === null) return false;
    const { route, params } = found;
    const ctx = new DirectContext({ req, res }, found, {
      isBehindProxy,
      createContext: () => createContext(req, res),
    });
    around(ctx, async () => await runRoute(route, ctx, params))
      .then(() => ctx.end())
      .catch((error: unknown) => {
        onError(error);
        ctx.fail();
      });
    return true;
  };
}
