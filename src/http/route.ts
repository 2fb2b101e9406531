import type * as z from 'zod';
import type { AccountCaller } from '../db/account-keys.ts';
import { findApp } from '../db/apps.ts';
import type { App } from '../db/apps.ts';
import { isId } from '../domain/ids.ts';
import type { AppId, Id, IdKind } from '../domain/ids.ts';
import type { Permission } from '../domain/keys.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, foundOrThrow, notFound } from './errors.ts';
import type { ErrorCode, FieldError } from './errors.ts';
import { answerOnce, readIdempotencyKey } from './idempotency.ts';
import { authenticateAccount, authenticateSdk, requirePermission } from './middleware/authenticate.ts';
import { parseBody } from './middleware/parse-body.ts';
import { createIdGenerator } from './id-generator.ts';
import type { IdGenerator } from './id-generator.ts';
import { limitRate } from './rate-limits.ts';
import type { RateLimitName } from './rate-limits.ts';
import { jsonReply, sendReply } from './reply.ts';
import { findUnstorableText } from './storable-text.ts';

/** Who proves himself how. `provider`: the handler checks the signature over bytes that nobody has read before. */
export type Auth = 'account' | 'sdk' | 'none' | 'provider';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH';

type Ids = Readonly<Record<string, IdKind>>;

type CallerOf<A extends Auth> = A extends 'account'
  ? AccountCaller
  : A extends 'sdk'
    ? { readonly appId: AppId }
    : undefined;

/** What a handler knows of a request when it is called: everything is checked. */
export interface Call<A extends Auth, P extends string, I extends Ids, Q, B> {
  readonly ctx: HttpContext;
  readonly deps: HttpDeps;
  /** The moment of the request, epoch ms. */
  readonly now: number;
  /** Makes the ids and keys of this call; of one that is run again for its idempotency key, those of the first try. */
  readonly idGenerator: IdGenerator;
  readonly caller: CallerOf<A>;
  /** The app in the path of an account's route; it belongs to the account. */
  readonly app: A extends 'account' ? (P extends `${string}/:appId${string}` ? App : undefined) : undefined;
  /** Path parameters as they came. */
  readonly params: Readonly<Record<string, string>>;
  /** The path parameters that `ids` declares. */
  readonly ids: { readonly [K in keyof I]: Id<I[K]> };
  readonly query: Q;
  readonly body: B;
}

interface RouteText<A extends Auth, P extends string> {
  readonly method: Method;
  readonly path: P;
  readonly auth: A;
  /** What an account key must be allowed; null for every other kind of caller. */
  readonly permission: A extends 'account' ? Permission : null;
  /** The operation's name in the API's description, which generated clients use. Never changes. */
  readonly operationId: string;
  /** One line for the API's description. */
  readonly summary: string;
  /** What a caller should know beyond that; CommonMark. */
  readonly description?: string;
  /** Errors that the handler answers, beyond those that follow from the rest of the declaration. */
  readonly errors?: readonly ErrorCode[];
}

interface RouteSpec<
  A extends Auth,
  P extends string,
  I extends Ids,
  Q extends z.ZodType,
  B extends z.ZodType,
  R,
> extends RouteText<A, P> {
  /** Path parameters that are ids, and of what. `appId` of an account's route needs no mention. */
  readonly ids?: I;
  readonly query?: Q;
  /** The JSON body. A request without a body counts as `{}`. */
  readonly body?: B;
  /** How often one caller may call, and who counts as one. An account key's limit needs no mention. */
  readonly rateLimit?: {
    readonly name: RateLimitName;
    readonly caller: (call: Call<A, P, I, z.output<Q>, z.output<B>>) => string;
  };
  readonly response: R;
}

interface JsonResponse<R extends z.ZodType> {
  readonly status: 200 | 201;
  readonly schema: R;
}

/** An answer that is not JSON of one form: the handler puts it on `ctx` itself. */
interface OtherResponse {
  readonly status: 200 | 302;
  /** Null for an answer without a body. */
  readonly contentType: string | null;
  /** What the body is, where more can be said than its type. */
  readonly schema?: z.ZodType;
  /** Headers of the answer, and what each says. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A route as the table of all routes has it: for the router, for the description of the API, and for tests. */
export interface Route extends RouteText<Auth, string> {
  readonly ids: Ids;
  readonly query: z.ZodType | null;
  readonly body: z.ZodType | null;
  /** Whether callers may send an `Idempotency-Key`: every POST of an account. */
  readonly takesIdempotencyKey: boolean;
  /** Whether the frame keeps the answer for it; a route that answers by itself keeps it by itself. */
  readonly keepsAnswers: boolean;
  readonly rateLimitName: RateLimitName | null;
  readonly response: {
    readonly status: number;
    readonly schema: z.ZodType | null;
    readonly contentType: string | null;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** Checks a request in the order that the contract promises, and answers it. */
  readonly run: (ctx: HttpContext, deps: HttpDeps, params: Readonly<Record<string, string>>) => Promise<void>;
}

/** Routes that belong together in the API's description. */
export interface RouteGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

/** Declares a route whose answer is JSON. A POST of an account honours `Idempotency-Key` by itself. */
export function route<
  A extends Auth,
  const P extends string,
  R extends z.ZodType,
  const I extends Ids = Record<never, never>,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: RouteSpec<A, P, I, Q, B, JsonResponse<R>> & {
    readonly handler: (call: Call<A, P, I, z.output<Q>, z.output<B>>) => Promise<z.input<R>>;
  },
): Route {
  const { status, schema } = spec.response;
  const description = described(spec);
  const keepsAnswers = description.takesIdempotencyKey;
  return {
    ...description,
    keepsAnswers,
    response: { status, schema, contentType: 'application/json' },
    run: async (ctx, deps, params) => {
      const call = await check(spec, ctx, deps, params);
      const { caller } = call;
      const reply =
        keepsAnswers && caller !== undefined && 'accountId' in caller
          ? await answerOnce(ctx, deps, caller.accountId, call.body, async (idGenerator) =>
              jsonReply(status, await spec.handler({ ...call, idGenerator })),
            )
          : jsonReply(status, await spec.handler(call));
      sendReply(ctx, reply);
    },
  };
}

/** Declares a route whose handler puts the answer on the context itself: a file, or one of several forms. */
export function rawRoute<
  A extends Auth,
  const P extends string,
  const I extends Ids = Record<never, never>,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: RouteSpec<A, P, I, Q, B, OtherResponse> & {
    readonly handler: (call: Call<A, P, I, z.output<Q>, z.output<B>>) => Promise<void>;
  },
): Route {
  return {
    ...described(spec),
    keepsAnswers: false,
    response: { schema: null, ...spec.response },
    run: async (ctx, deps, params) => {
      ctx.status = spec.response.status;
      await spec.handler(await check(spec, ctx, deps, params));
    },
  };
}

function described<
  A extends Auth,
  P extends string,
  I extends Ids,
  Q extends z.ZodType,
  B extends z.ZodType,
  R,
>(spec: RouteSpec<A, P, I, Q, B, R>): Omit<Route, 'response' | 'run' | 'keepsAnswers'> {
  const { method, path, auth, permission, operationId, summary, description, errors } = spec;
  return {
    method,
    path,
    auth,
    permission,
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    errors: errors ?? [],
    takesIdempotencyKey: auth === 'account' && method === 'POST',
    ids: spec.ids ?? {},
    query: spec.query ?? null,
    body: spec.body ?? null,
    rateLimitName: auth === 'account' ? 'account' : (spec.rateLimit?.name ?? null),
  };
}

/** The contract's order: 401, 403, 400, 404. What comes after needs the handler. A 429 comes as early as its caller is known. */
async function check<
  A extends Auth,
  P extends string,
  I extends Ids,
  Q extends z.ZodType,
  B extends z.ZodType,
  R,
>(
  spec: RouteSpec<A, P, I, Q, B, R>,
  ctx: HttpContext,
  deps: HttpDeps,
  params: Readonly<Record<string, string>>,
): Promise<Call<A, P, I, z.output<Q>, z.output<B>>> {
  const caller =
    spec.auth === 'account'
      ? await authenticateAccount(ctx, deps)
      : spec.auth === 'sdk'
        ? await authenticateSdk(ctx, deps)
        : undefined;
  if (caller !== undefined && 'keyId' in caller) requirePermission(caller, spec.permission ?? 'payout');
  // Whoever honours the key reads it again; what is malformed comes before any look-up.
  if (spec.auth === 'account' && spec.method === 'POST') readIdempotencyKey(ctx);
  const { query, body } = await checkShape(spec.query, spec.auth === 'provider' ? undefined : spec.body, ctx);
  const ids = Object.entries(spec.ids ?? {}).map(([name, kind]) => {
    const text = params[name] ?? '';
    if (!isId(kind, text)) throw notFound();
    return [name, text] as const;
  });
  const app =
    caller !== undefined && 'accountId' in caller
      ? await appOf(caller, ctx, deps, params['appId'])
      : undefined;
  // What the three conditional types say is what was just computed from the same spec; the compiler can't follow that.
  const now = deps.now();
  const checked = {
    ctx,
    deps,
    now,
    idGenerator: createIdGenerator(now),
    caller,
    app,
    params,
    ids: Object.fromEntries(ids),
    query,
    body,
  };
  const call = checked as unknown as Call<A, P, I, z.output<Q>, z.output<B>>;
  if (spec.rateLimit !== undefined) {
    await limitRate(ctx, deps.rateLimits, spec.rateLimit.name, spec.rateLimit.caller(call));
  }
  return call;
}

async function appOf(caller: AccountCaller, ctx: HttpContext, deps: HttpDeps, text: string | undefined) {
  if (text === undefined) return undefined;
  if (!isId('app', text)) throw notFound();
  const app = foundOrThrow(await findApp(deps.sql, caller.accountId, text));
  ctx.state.appId = app.id;
  return app;
}

async function checkShape(
  querySchema: z.ZodType | undefined,
  bodySchema: z.ZodType | undefined,
  ctx: HttpContext,
) {
  const json = bodySchema === undefined ? undefined : ((await parseBody(ctx)) ?? {});
  const unstorable = [...findUnstorableText(ctx.query), ...findUnstorableText(json)];
  if (unstorable.length > 0) throw new ApiError('invalid_request', { errors: unstorable });
  const query = querySchema?.safeParse(ctx.query);
  const body = bodySchema?.safeParse(json);
  const errors = [...fieldErrors(query?.error), ...fieldErrors(body?.error)];
  if (errors.length > 0) throw new ApiError('invalid_request', { errors });
  return { query: query?.data, body: body?.data };
}

function fieldErrors(error: z.ZodError | undefined): FieldError[] {
  return (error?.issues ?? []).map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
}
