import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import type { Permission } from '../../domain/keys.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { CSV_LIST_HEADERS } from '../list-csv.ts';
import { limitRate } from '../rate-limits.ts';
import type { RateLimitName } from '../rate-limits.ts';
import type { Auth, CallerRule } from './callers.ts';
import { readCall } from './read-call.ts';
import type { Ids, Input, Params, ParsedCall } from './read-call.ts';
import type { Declaration, Handling, Response } from './declaration.ts';
import { prefersCsv, respond } from './respond.ts';

/** A limit besides those of the caller, and a text that identifies who is counted. */
interface RateLimit<C> {
  readonly name: RateLimitName;
  readonly caller: (call: C) => string;
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

/** Declares a route: who may call it, what it reads, what it returns. */
export function route<
  Extra extends object,
  R extends Response,
  const I extends Ids = Record<never, never>,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration &
    Handling<Extra, R, I, Q, B> & {
      readonly caller: CallerRule<Extra, z.output<NoInfer<B>>>;
      readonly rateLimit?: RateLimit<ParsedCall<I, Q, B> & Extra>;
    },
): Route {
  const { caller, rateLimit, method, path, responseStepMs, errors = [] } = spec;
  if (!caller.paths.test(path)) throw new Error(`${method} ${path}: the caller is one of other paths`);
  const takesIdempotencyKey = caller.idempotencyAccount !== undefined && method === 'POST';
  const isRaw = 'contentType' in spec.response;
  // An open route takes a slot if it says that it may refuse a call for want of one.
  const takesSlot = caller.auth === 'sdk' || errors.includes('unavailable');
  const storesResponses = takesIdempotencyKey && !isRaw;
  const isCreators = caller.auth === 'creator';
  const files = isCreators ? 'creatorFiles' : 'accountFiles';
  // A list as CSV has up to 10,000 rows or about 8 MiB, which take memory until they are read.
  const isFileList = 'asCsv' in spec.response && (spec.response.asCsv ?? false);
  const makesFile = (ctx: HttpContext) => spec.makesFile === true || (isFileList && prefersCsv(ctx));
  return {
    ...describe(spec),
    takesIdempotencyKey,
    storesResponses,
    auth: caller.auth,
    permission: caller.permission,
    rateLimitName: rateLimit?.name ?? caller.rateLimitName,
    limitsAddress: caller.limitsAddress,
    run: async (ctx, deps, params) => {
      const call = await caller.check({ ctx, deps, method, params }, (own, bodyLimitBytes) =>
        readCall<I, Q, B>(spec, { ctx, deps: own, params }, bodyLimitBytes),
      );
      if (rateLimit !== undefined) limitRate(ctx, deps.rateLimits, rateLimit.name, rateLimit.caller(call));
      const account = storesResponses ? caller.idempotencyAccount?.(call) : undefined;
      const send = () => respond(spec, call, account);
      const openHolder = takesSlot ? caller.openCall?.(call) : undefined;
      if (isFileList) ctx.vary('Accept');
      const fileHolder = makesFile(ctx) ? caller.fileHolder?.(call) : undefined;
      const creator = caller.creatorCall?.(call);
      const inSlot = (work: () => Promise<void>): Promise<void> => {
        if (openHolder !== undefined) return deps.intake.openCalls.run(openHolder, work);
        if (fileHolder !== undefined) return deps.intake[files].run(fileHolder, ctx.res, work);
        if (creator !== undefined) return deps.intake.creatorCalls.run(creator, work);
        return work();
      };
      if (responseStepMs === undefined) await inSlot(send);
      else await respondAtStep(responseStepMs, send, inSlot);
    },
  };
}

/** Runs `work` in a slot, frees the slot for others, and then waits for the next multiple of `stepMs` since the work began. */
async function respondAtStep(
  stepMs: number,
  work: () => Promise<void>,
  inSlot: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  let begunAt = performance.now();
  try {
    await inSlot(() => {
      begunAt = performance.now();
      return work();
    });
  } finally {
    await sleep(stepMs - ((performance.now() - begunAt) % stepMs));
  }
}

/** Returns the description of a route in the OpenAPI document that does not depend on its caller. */
function describe<I extends Ids, Q extends z.ZodType, B extends z.ZodType>({
  method,
  path,
  operationId,
  summary,
  description,
  errors = [],
  ids,
  query,
  body,
  response,
}: Declaration & Input<I, Q, B> & { readonly response: Response }) {
  return {
    method,
    path,
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    errors,
    ids: ids ?? {},
    query: query ?? null,
    body: body ?? null,
    response: {
      schema: null,
      contentType: 'application/json',
      ...response,
      ...('asCsv' in response && response.asCsv
        ? { headers: { ...response.headers, ...CSV_LIST_HEADERS } }
        : {}),
    },
  };
}
