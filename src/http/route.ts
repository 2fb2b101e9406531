import type * as z from 'zod';
import { findApp } from '../db/apps.ts';
import type { App } from '../db/apps.ts';
import { findCreator } from '../db/creator-sessions.ts';
import type { Creator, CreatorSession } from '../db/creator-sessions.ts';
import type { OperatorSession } from '../db/operator-sessions.ts';
import type { Session } from '../db/sessions.ts';
import type { Actor } from '../domain/audit.ts';
import { isId } from '../domain/ids.ts';
import type { AppId, Id, IdKind } from '../domain/ids.ts';
import type { Permission, SdkKeyKind } from '../domain/keys.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { foundOrThrow, notFound } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import { createIdGenerator } from './id-generator.ts';
import type { IdGenerator } from './id-generator.ts';
import { readIdempotencyKey, respondOnce } from './idempotency.ts';
import {
  authenticateAccount,
  authenticateCreator,
  authenticateOperator,
  authenticateSdk,
  authenticateSession,
  requirePermission,
} from './authenticate.ts';
import type { Caller } from './authenticate.ts';
import { CSV_LIST_HEADERS, CSV_TYPE, csvOfList } from './list-csv.ts';
import { readInput } from './read-input.ts';
import { addressCaller, limitRate } from './rate-limits.ts';
import type { RateLimitName } from './rate-limits.ts';
import { jsonReply, sendReply } from './reply.ts';
import type { Reply } from './reply.ts';

/**
 * How a caller authenticates. `account`: a key, or a session that holds one. `session`: a session only. `creator`: a session
 * of a creator, and `operator`: one of the operator, which count nowhere else. `provider`: the handler verifies the signature
 * over the raw body.
 */
export type Auth = 'account' | 'session' | 'creator' | 'operator' | 'sdk' | 'none' | 'provider';

type Params = Readonly<Record<string, string>>;
type Ids = Readonly<Record<string, IdKind>>;
type NoIds = Record<never, never>;

/** The part of a declaration that every kind of route has. */
interface Declaration<P extends string = string> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: P;
  /** The operation's name in the OpenAPI document, which generated clients use. Never changes. */
  readonly operationId: string;
  /** One line for the OpenAPI document. */
  readonly summary: string;
  /** Further details for the OpenAPI document, in CommonMark. */
  readonly description?: string;
  /** Errors that the handler throws, beyond those that follow from the rest of the declaration. */
  readonly errors?: readonly ErrorCode[];
}

/** What a route reads from a request. */
interface Input<I extends Ids, Q extends z.ZodType, B extends z.ZodType> {
  /** Path parameters that are ids, and their kinds. `appId` of an app's route is implied. */
  readonly ids?: I;
  readonly query?: Q;
  /** The JSON body. A missing body counts as `{}`. */
  readonly body?: B;
}

interface NeedsPermission {
  /** The permission that the account key needs. */
  readonly permission: Permission;
}

interface JsonResponse<R extends z.ZodType> {
  readonly response: {
    readonly status: 200 | 201;
    readonly schema: R;
    /** Headers that the handler sets, with their descriptions. */
    readonly headers?: Readonly<Record<string, string>>;
  };
}

/** A response that is not JSON of one schema: a file, a page or a redirect. */
interface RawResponse {
  readonly response: {
    readonly status: 200 | 302;
    readonly contentType: string;
    /** The schema of the body, if it is more specific than the content type. */
    readonly schema?: z.ZodType;
    /** Headers of the response, with their descriptions. */
    readonly headers?: Readonly<Record<string, string>>;
  };
}

/** Headers and body of a raw response. The status is the declared one. */
export type RawReply = Pick<Reply, 'headers' | 'body'>;

interface Handler<C, R> {
  readonly handler: (call: C) => Promise<R>;
}

/** What a handler of any route receives. Everything in it has been checked. */
interface Call {
  readonly ctx: HttpContext;
  readonly deps: HttpDeps;
  /** When the request arrived, epoch ms. */
  readonly now: number;
  /** Path parameters as received. */
  readonly params: Params;
}

/** The parsed input of a route. */
interface ParsedInput<I extends Ids, Q extends z.ZodType, B extends z.ZodType> {
  /** The path parameters that `ids` declares. */
  readonly ids: { readonly [K in keyof I]: Id<I[K]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
}

type PublicCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType> = Call & ParsedInput<I, Q, B>;

type SdkCall<B extends z.ZodType> = PublicCall<NoIds, z.ZodUndefined, B> & {
  /** The app that the SDK key belongs to. */
  readonly appId: AppId;
  readonly keyKind: SdkKeyKind;
};

type AccountCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType> = PublicCall<I, Q, B> & {
  readonly caller: Caller;
};

type SessionCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType> = PublicCall<I, Q, B> & {
  readonly caller: Caller;
  readonly session: Session;
};

type CreatorCall<I extends Ids, Q extends z.ZodType = z.ZodUndefined> = PublicCall<I, Q, z.ZodUndefined> & {
  readonly session: CreatorSession;
};

type CreatorPageCall<I extends Ids, Q extends z.ZodType> = PublicCall<I, Q, z.ZodUndefined> & {
  /** Whose numbers the route returns. */
  readonly creator: Creator;
  /** The app of the creator. */
  readonly app: App;
};

type OperatorCall<I extends Ids, Q extends z.ZodType> = PublicCall<I, Q, z.ZodUndefined> & {
  readonly session: OperatorSession;
};

type AppCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType> = AccountCall<I, Q, B> & {
  /** The app in the path. It belongs to the caller's account. */
  readonly app: App;
};

/**
 * Creates the ids and keys of a call. A call that runs again with its idempotency key creates those of its first run.
 */
interface CreatesIds {
  readonly idGenerator: IdGenerator;
}

/** A route in the table of all routes: for the router, the OpenAPI document and the tests. */
export interface Route extends Declaration {
  readonly auth: Auth;
  /** The permission that an account key or a session needs; null for none, and for every other kind of caller. */
  readonly permission: Permission | null;
  readonly ids: Ids;
  readonly query: z.ZodType | null;
  readonly body: z.ZodType | null;
  /** Whether callers may send an `Idempotency-Key`. True for every POST with an account key. */
  readonly takesIdempotencyKey: boolean;
  /** Whether `respondOnce` stores the response. False for a raw route, whose handler reads the key itself. */
  readonly storesResponses: boolean;
  /** The rate limit that responds with 429; null for none. */
  readonly rateLimitName: RateLimitName | null;
  /** Whether calls count towards the limit of their address, before anything else is done. */
  readonly limitsAddress: boolean;
  readonly response: {
    readonly status: number;
    readonly schema: z.ZodType | null;
    readonly contentType: string;
    /** Whether the list is also returned as CSV. */
    readonly asCsv?: boolean;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** Checks a request in the order that the contract promises, and responds to it. */
  readonly run: (ctx: HttpContext, deps: HttpDeps, params: Params) => Promise<void>;
}

/** A tag of the OpenAPI document, with its routes. */
export interface RouteGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

/** Declares a route of an account key that does not belong to one app. A POST honours `Idempotency-Key`. */
export function accountRoute<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration &
    Input<I, Q, B> &
    NeedsPermission &
    JsonResponse<R> &
    Handler<AccountCall<I, Q, B> & CreatesIds, z.input<R>>,
): Route {
  // Only appRoute checks that the app belongs to the account.
  if (spec.path.includes('/:appId')) throw new Error(`${spec.path}: declare it with appRoute`);
  return {
    ...describeAccountRoute(spec),
    ...describeJson(spec, { storesResponses: spec.method === 'POST' }),
    run: async (ctx, deps, params) => {
      const call = await checkAccount(spec, ctx, deps, params);
      await sendAccountJson(spec, call, (ids) => spec.handler({ ...call, ...ids }));
    },
  };
}

/** Declares a route of an account key for one of the account's apps. A POST honours `Idempotency-Key`. */
export function appRoute<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration<AppPath> &
    Input<I, Q, B> &
    NeedsPermission &
    JsonResponse<R> &
    Handler<AppCall<I, Q, B> & CreatesIds, z.input<R>> & {
      /** For a list: whether `Accept: text/csv` gets its rows as CSV. */
      readonly asCsv?: boolean;
    },
): Route {
  return {
    ...describeAccountRoute(spec),
    ...describeJson(spec, { storesResponses: spec.method === 'POST', asCsv: spec.asCsv === true }),
    run: async (ctx, deps, params) => {
      const call = await checkApp(spec, ctx, deps, params);
      if (spec.asCsv === true && wantsCsv(ctx)) {
        await sendCsv(spec, call, async (query) => {
          const idGenerator = createIdGenerator(call.now);
          return await spec.handler({ ...call, query, idGenerator });
        });
        return;
      }
      await sendAccountJson(spec, call, (ids) => spec.handler({ ...call, ...ids }));
    },
  };
}

/** Declares an app's route whose response is not JSON. The handler of a POST honours `Idempotency-Key` itself. */
export function rawAppRoute<
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration<AppPath> &
    Input<I, Q, B> &
    NeedsPermission &
    RawResponse &
    Handler<AppCall<I, Q, B>, RawReply>,
): Route {
  return {
    ...describeAccountRoute(spec),
    ...describeRaw(spec),
    run: async (ctx, deps, params) => {
      const call = await checkApp(spec, ctx, deps, params);
      sendReply(ctx, { status: spec.response.status, ...(await spec.handler(call)) });
    },
  };
}

/**
 * Declares a route of a console session, which no key can call. An `:accountId` in its path is that of the session: any other
 * one is a 404.
 */
export function sessionRoute<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration &
    Input<I, Q, B> &
    JsonResponse<R> & { readonly permission: Permission | null } & Handler<
      SessionCall<I, Q, B>,
      z.input<R>
    > & {
      /** A limit per client address, besides that of the session. */
      readonly addressLimit?: RateLimitName;
      /** For a list: whether `Accept: text/csv` gets its rows as CSV. */
      readonly asCsv?: boolean;
    },
): Route {
  const { permission, addressLimit } = spec;
  return {
    ...describe(spec, { auth: 'session', permission, rateLimitName: 'account', limitsAddress: false }),
    ...describeJson(spec, { storesResponses: false, asCsv: spec.asCsv === true }),
    run: async (ctx, deps, params) => {
      const caller = await authenticateSession(ctx, deps);
      if (permission !== null) requirePermission(caller, permission);
      if (addressLimit !== undefined)
        await limitRate(ctx, deps.rateLimits, addressLimit, addressCaller(ctx.ip));
      const acting = actingDeps(ctx, deps, spec, actorOf(caller));
      const checked = await checkInput<I, Q, B>(spec, ctx, acting, params);
      const { accountId } = params;
      if (accountId !== undefined && accountId !== caller.accountId) throw notFound();
      await sendJsonOrCsv(spec, { ...checked, caller, session: caller.session });
    },
  };
}

/** Declares a route of a creator's session. It takes no query and no body, and no other caller can call it. */
export function creatorRoute<R extends z.ZodType, const I extends Ids = NoIds>(
  spec: Declaration<CreatorPath> &
    Input<I, z.ZodUndefined, z.ZodUndefined> &
    JsonResponse<R> &
    Handler<CreatorCall<I>, z.input<R>>,
): Route {
  return {
    ...describeCreatorRoute(spec),
    ...describeJson(spec),
    run: async (ctx, deps, params) => {
      const call = await checkCreator<I, z.ZodUndefined>(spec, ctx, deps, params);
      sendReply(ctx, jsonReply(spec.response.status, await spec.handler(call)));
    },
  };
}

/** Declares a part of the creator's page: the route of the creator, and the one with which the founder sees the same. */
export function creatorPageRoutes<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
>(
  spec: CreatorPageDeclaration &
    Input<I, Q, z.ZodUndefined> &
    JsonResponse<R> &
    Handler<CreatorPageCall<I, Q>, z.input<R>> & {
      /** For a list: whether `Accept: text/csv` gets its rows as CSV. */
      readonly asCsv?: boolean;
    },
): readonly [own: Route, founders: Route] {
  const described = describeJson(spec, { storesResponses: false, asCsv: spec.asCsv === true });
  return onCreatorPage<I, Q>(spec, described, async (call) => await sendJsonOrCsv(spec, call));
}

/** Declares a part of the creator's page whose response is not JSON. */
export function rawCreatorPageRoutes<const I extends Ids = NoIds>(
  spec: CreatorPageDeclaration &
    Input<I, z.ZodUndefined, z.ZodUndefined> &
    RawResponse &
    Handler<CreatorPageCall<I, z.ZodUndefined>, RawReply>,
): readonly [own: Route, founders: Route] {
  return onCreatorPage<I, z.ZodUndefined>(spec, describeRaw(spec), async (call) =>
    sendReply(call.ctx, { status: spec.response.status, ...(await spec.handler(call)) }),
  );
}

/**
 * Returns the two routes of a part of the creator's page. The one of the founder is under the affiliate of an app, needs the
 * permission `read` and has the same handler, so that a founder sees exactly what the creator sees.
 *
 * A session of the creator that a founder starts would do the same with fewer routes. But it would have to be distinguished from
 * the creator's own in the cookies, the list of sessions, the audit and each route that writes, and to end with the founder's
 * session, key and permission. A founder who stays a founder needs none of that: no session is stored, nothing can be changed,
 * and each call checks the session and the key. The statement of a payout stores the payout's CSV if the export has not yet;
 * its bytes follow from the payout, so it does not matter who asks first.
 */
function onCreatorPage<I extends Ids, Q extends z.ZodType>(
  spec: CreatorPageDeclaration & Input<I, Q, z.ZodUndefined>,
  described: Pick<Route, 'storesResponses' | 'response'>,
  send: (call: CreatorPageCall<I, Q>) => Promise<void>,
): readonly [own: Route, founders: Route] {
  const { path, operationId, summary, description } = spec;
  const founders = {
    ...spec,
    path: `/apps/:appId/affiliates/:affiliateId${path}`,
    operationId: `${operationId}AsFounder`,
    summary: summary.replace(/\.$/, ', for the founder.'),
    description: [description, `The response is what the creator sees at \`GET ${path}\`.`]
      .filter((text) => text !== undefined)
      .join(' '),
    permission: 'read',
  } as const;
  return [
    {
      ...describeCreatorRoute(spec),
      ...described,
      run: async (ctx, deps, params) => {
        const call = await checkCreator<I, Q>(spec, ctx, deps, params);
        const { accountId, appId } = call.session;
        const app = foundOrThrow(await findApp(call.deps.sql, accountId, appId));
        await send({ ...call, creator: call.session, app });
      },
    },
    {
      ...describeAccountRoute({ ...founders, ids: { ...spec.ids, affiliateId: 'affiliate' } }),
      ...described,
      run: async (ctx, deps, params) => {
        const call = await checkApp<I, Q, z.ZodUndefined>(founders, ctx, deps, params);
        const { affiliateId = '' } = params;
        if (!isId('affiliate', affiliateId)) throw notFound();
        const creator = foundOrThrow(await findCreator(call.deps.sql, { appId: call.app.id, affiliateId }));
        await send({ ...call, creator });
      },
    },
  ];
}

/** Declares a route of the operator's session. It takes no body, and no other caller can call it. */
export function operatorRoute<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration<OperatorPath> &
    Input<I, Q, z.ZodUndefined> &
    JsonResponse<R> &
    Handler<OperatorCall<I, Q>, z.input<R>>,
): Route {
  return {
    ...describe(spec, { auth: 'operator', permission: null, rateLimitName: 'account', limitsAddress: true }),
    ...describeJson(spec),
    run: async (ctx, deps, params) => {
      const session = await authenticateOperator(ctx, deps);
      const acting = actingDeps(ctx, deps, spec, { kind: 'operator', sessionId: session.id });
      const call = await checkInput<I, Q, z.ZodUndefined>(spec, ctx, acting, params);
      const body = await spec.handler({ ...call, session });
      sendReply(ctx, jsonReply(spec.response.status, body));
    },
  };
}

/** Declares a route of an SDK key. Calls are limited per device. */
export function sdkRoute<R extends z.ZodType, B extends z.ZodType<{ readonly deviceId: string }>>(
  spec: Declaration & { readonly body: B } & JsonResponse<R> &
    Handler<SdkCall<B>, z.input<R>> & {
      /** A limit per app and client address, besides that of the device, which the caller invents. */
      readonly addressLimit?: RateLimitName;
    },
): Route {
  return {
    ...describe(spec, { auth: 'sdk', permission: null, rateLimitName: 'sdk', limitsAddress: true }),
    ...describeJson(spec),
    run: async (ctx, allDeps, params) => {
      const deps = intakeDeps(allDeps);
      const { appId, keyKind } = await authenticateSdk(ctx, deps);
      if (spec.addressLimit !== undefined)
        await limitRate(ctx, deps.rateLimits, spec.addressLimit, `${appId} ${addressCaller(ctx.ip)}`);
      const call = await checkInput<NoIds, z.ZodUndefined, B>(spec, ctx, deps, params);
      await limitRate(ctx, deps.rateLimits, 'sdk', `${appId} ${call.body.deviceId}`);
      const body = await deps.intake.openCalls.run(
        async () => await spec.handler({ ...call, appId, keyKind }),
      );
      sendReply(ctx, jsonReply(spec.response.status, body));
    },
  };
}

/** Declares a route that needs no key. */
export function publicRoute<
  R extends z.ZodType,
  const I extends Ids = NoIds,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration &
    Input<I, Q, B> &
    JsonResponse<R> &
    Handler<PublicCall<I, Q, B>, z.input<R>> & {
      /** The limit, and a text that identifies the caller to count. */
      readonly rateLimit?: {
        readonly name: RateLimitName;
        readonly caller: (call: PublicCall<I, Q, B>) => string;
      };
      /** False for what a balancer asks for. True by default. */
      readonly limitsAddress?: boolean;
    },
): Route {
  const { rateLimit, limitsAddress = true } = spec;
  const rateLimitName = rateLimit?.name ?? null;
  return {
    ...describe(spec, { auth: 'none', permission: null, rateLimitName, limitsAddress }),
    ...describeJson(spec),
    run: async (ctx, deps, params) => {
      const call = await checkInput(spec, ctx, intakeDeps(deps), params);
      if (rateLimit !== undefined)
        await limitRate(ctx, deps.rateLimits, rateLimit.name, rateLimit.caller(call));
      const body = await admit(spec, deps, async () => await spec.handler(call));
      sendReply(ctx, jsonReply(spec.response.status, body));
    },
  };
}

/** Declares a route that needs no key and whose response is not JSON of one schema. */
export function rawPublicRoute(
  spec: Declaration &
    RawResponse &
    Handler<Call, RawReply> & {
      /** False if the handler counts itself. True by default. */
      readonly limitsAddress?: boolean;
    },
): Route {
  const { limitsAddress = true } = spec;
  return {
    ...describe(spec, { auth: 'none', permission: null, rateLimitName: null, limitsAddress }),
    ...describeRaw(spec),
    run: async (ctx, deps, params) => {
      const call = await checkInput({}, ctx, intakeDeps(deps), params);
      const reply = await admit(spec, deps, async () => await spec.handler(call));
      sendReply(ctx, { status: spec.response.status, ...reply });
    },
  };
}

/** Declares a route that a billing provider calls. The handler reads the raw body and verifies it. */
export function webhookRoute<R extends z.ZodType>(
  spec: Declaration & JsonResponse<R> & Handler<Call, z.input<R>>,
): Route {
  return {
    ...describe(spec, { auth: 'provider', permission: null, rateLimitName: null, limitsAddress: false }),
    ...describeJson(spec),
    run: async (ctx, deps, params) => {
      const call = await checkInput({}, ctx, intakeDeps(deps), params);
      sendReply(ctx, jsonReply(spec.response.status, await spec.handler(call)));
    },
  };
}

/** The largest JSON body with an account key: enough for a bulk call of a hundred rows with long addresses. */
const ACCOUNT_BODY_BYTES = 1024 * 1024;
/** The largest JSON body of a call that anybody can make. */
const OPEN_BODY_BYTES = 32 * 1024;

/** Returns the dependencies of a call that may change something: audit rows name who calls. */
function actingDeps(ctx: HttpContext, deps: HttpDeps, { method }: Declaration, actor: Actor): HttpDeps {
  if (method === 'GET') return deps;
  const named = { ...actor, requestId: ctx.state.requestId };
  return { ...deps, sql: deps.sql.actingAs(named), endpointSql: deps.endpointSql.actingAs(named) };
}

/** Returns how audit rows name the caller. */
function actorOf({ keyId, session }: Caller): Actor {
  return session === null ? { kind: 'key', keyId } : { kind: 'session', keyId, sessionId: session.id };
}

type AppPath = `/apps/:appId${string}`;
type CreatorPath = `/creator${string}`;
/** The page only reads: the founder could otherwise write in the name of the creator. */
type CreatorPageDeclaration = Declaration<CreatorPath> & { readonly method: 'GET' };
type OperatorPath = `/operator${string}`;

/** The dependencies of a call without an account key: its statements use the share of the pool that such calls have. */
function intakeDeps(deps: HttpDeps): HttpDeps {
  return { ...deps, sql: deps.intake.sql };
}

/** Runs the handler of an open route when there is room for it. Routes that never respond with 503 have no limit. */
async function admit<T>(
  { errors = [] }: Declaration,
  { intake }: HttpDeps,
  handle: () => Promise<T>,
): Promise<T> {
  return errors.includes('unavailable') ? await intake.openCalls.run(handle) : await handle();
}

function describe<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  spec: Declaration & Input<I, Q, B>,
  access: Pick<Route, 'auth' | 'permission' | 'rateLimitName' | 'limitsAddress'>,
) {
  const { method, path, operationId, summary, description, errors = [] } = spec;
  return {
    method,
    path,
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    errors,
    ids: spec.ids ?? {},
    query: spec.query ?? null,
    body: spec.body ?? null,
    takesIdempotencyKey: access.auth === 'account' && method === 'POST',
    ...access,
  };
}

function describeAccountRoute<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  spec: Declaration & Input<I, Q, B> & NeedsPermission,
) {
  return describe(spec, {
    auth: 'account',
    permission: spec.permission,
    rateLimitName: 'account',
    limitsAddress: false,
  });
}

function describeCreatorRoute<I extends Ids, Q extends z.ZodType>(
  spec: Declaration & Input<I, Q, z.ZodUndefined>,
) {
  return describe(spec, { auth: 'creator', permission: null, rateLimitName: 'account', limitsAddress: true });
}

function describeJson<R extends z.ZodType>(
  { response }: JsonResponse<R>,
  { storesResponses, asCsv = false }: { readonly storesResponses: boolean; readonly asCsv?: boolean } = {
    storesResponses: false,
  },
) {
  const described = { ...response, contentType: 'application/json' };
  return {
    storesResponses,
    response: asCsv
      ? { ...described, asCsv, headers: { ...response.headers, ...CSV_LIST_HEADERS } }
      : described,
  };
}

/** Whether the caller prefers a list as CSV. */
function wantsCsv(ctx: HttpContext): boolean {
  ctx.vary('Accept');
  return ctx.accepts('application/json', CSV_TYPE) === CSV_TYPE;
}

/** Sends what the handler returns as JSON, or as CSV if it is a list and the caller prefers that. */
async function sendJsonOrCsv<R extends z.ZodType, C extends Pick<Call, 'ctx'> & { readonly query: unknown }>(
  spec: Declaration & JsonResponse<R> & Handler<C, z.input<R>> & { readonly asCsv?: boolean },
  call: C,
): Promise<void> {
  if (spec.asCsv === true && wantsCsv(call.ctx))
    await sendCsv(spec, call, async (query) => await spec.handler({ ...call, query }));
  else sendReply(call.ctx, jsonReply(spec.response.status, await spec.handler(call)));
}

/** Sends the rows of a list as CSV. `readPage` reads each page as for a caller who asks for JSON. */
async function sendCsv<R extends z.ZodType, Q>(
  spec: Declaration & JsonResponse<R>,
  call: Pick<Call, 'ctx'> & { readonly query: Q },
  readPage: (query: Q) => Promise<unknown>,
): Promise<void> {
  const { status, schema } = spec.response;
  const query = call.query as Readonly<Record<string, unknown>>;
  const name = spec.path.split('/').at(-1) ?? 'list';
  const reply = await csvOfList(
    schema,
    name,
    query['cursor'] as string | undefined,
    async (limit, cursor) => {
      const page = await readPage({ ...query, limit, cursor } as Q);
      return page as Awaited<ReturnType<Parameters<typeof csvOfList>[3]>>;
    },
  );
  sendReply(call.ctx, { status, ...reply });
}

function describeRaw({ response }: RawResponse) {
  return { storesResponses: false, response: { schema: null, ...response } };
}

/** Checks input: 400, then 404 for a malformed id. */
async function checkInput<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  spec: Input<I, Q, B>,
  ctx: HttpContext,
  deps: HttpDeps,
  params: Params,
  bodyLimitBytes = OPEN_BODY_BYTES,
): Promise<PublicCall<I, Q, B>> {
  const now = deps.now();
  const { query, body } = await readInput(spec, ctx, deps, { now, bodyLimitBytes });
  const ids = readIds(spec.ids, params);
  return { ctx, deps, now, params, ids, query, body };
}

/** Checks a call with an account key in the contract's order: 401, 403, 400, 404. A 429 comes after the key's format. */
async function checkAccount<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  spec: Declaration & Input<I, Q, B> & NeedsPermission,
  ctx: HttpContext,
  allDeps: HttpDeps,
  params: Params,
): Promise<AccountCall<I, Q, B>> {
  const caller = requirePermission(await authenticateAccount(ctx, allDeps), spec.permission);
  const deps = actingDeps(ctx, allDeps, spec, actorOf(caller));
  // A malformed key is a 400 even if the app does not exist, so it is read before the app is looked up.
  if (spec.method === 'POST') readIdempotencyKey(ctx);
  return { ...(await checkInput(spec, ctx, deps, params, ACCOUNT_BODY_BYTES)), caller };
}

async function checkApp<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  spec: Declaration & Input<I, Q, B> & NeedsPermission,
  ctx: HttpContext,
  deps: HttpDeps,
  params: Params,
): Promise<AppCall<I, Q, B>> {
  const call = await checkAccount(spec, ctx, deps, params);
  const { appId = '' } = params;
  if (!isId('app', appId)) throw notFound();
  const app = foundOrThrow(await findApp(deps.sql, call.caller.accountId, appId));
  ctx.state.appId = app.id;
  return { ...call, app };
}

/** Checks a call of a creator. Its statements use the share of the pool that calls without an account key have. */
async function checkCreator<I extends Ids, Q extends z.ZodType>(
  spec: Declaration & Input<I, Q, z.ZodUndefined>,
  ctx: HttpContext,
  allDeps: HttpDeps,
  params: Params,
): Promise<CreatorCall<I, Q>> {
  const session = await authenticateCreator(ctx, intakeDeps(allDeps));
  const { id: sessionId, affiliateId } = session;
  const deps = actingDeps(ctx, intakeDeps(allDeps), spec, { kind: 'creator', affiliateId, sessionId });
  return { ...(await checkInput<I, Q, z.ZodUndefined>(spec, ctx, deps, params)), session };
}

/** Sends the JSON that `run` returns. A POST with an `Idempotency-Key` runs once. */
async function sendAccountJson<R extends z.ZodType>(
  { method, response: { status } }: Declaration & JsonResponse<R>,
  { ctx, deps, caller, body, now }: Call & { readonly caller: Caller; readonly body: unknown },
  run: (ids: CreatesIds) => Promise<z.input<R>>,
): Promise<void> {
  const reply = async (idGenerator: IdGenerator) => jsonReply(status, await run({ idGenerator }));
  sendReply(
    ctx,
    method === 'POST'
      ? await respondOnce(ctx, deps, caller.accountId, body, reply)
      : await reply(createIdGenerator(now)),
  );
}

/** Returns the ids in the path. Throws 404 if one is malformed, as for an unknown id. */
function readIds<I extends Ids>(kinds: I | undefined, params: Params): { readonly [K in keyof I]: Id<I[K]> } {
  const ids = Object.entries(kinds ?? {}).map(([name, kind]) => {
    const text = params[name] ?? '';
    if (!isId(kind, text)) throw notFound();
    return [name, text] as const;
  });
  // Object.fromEntries loses which name has which kind.
  return Object.fromEntries(ids) as { readonly [K in keyof I]: Id<I[K]> };
}
