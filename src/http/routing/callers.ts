import { findApp } from '../../db/apps.ts';
import type { App } from '../../db/apps.ts';
import { findCreator } from '../../db/creator-sessions.ts';
import type { Creator, CreatorSession } from '../../db/creator-sessions.ts';
import type { OperatorSession } from '../../db/operator-sessions.ts';
import type { Session } from '../../db/sessions.ts';
import { addressSite } from '../../domain/addresses.ts';
import type { Actor } from '../../domain/audit.ts';
import type { AccountId, AppId } from '../../domain/ids.ts';
import type { Permission, SdkKeyKind } from '../../domain/keys.ts';
import {
  authenticateAccount,
  authenticateCreator,
  authenticateOperator,
  authenticateSdk,
  authenticateSession,
  managesMembers,
  requireApp,
  requirePermission,
  requireWholeAccount,
} from '../authenticate.ts';
import type { Caller } from '../authenticate.ts';
import { ACCOUNT_BODY_BYTES, OPEN_BODY_BYTES } from '../body-limits.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, foundOrThrow, notFound } from '../errors.ts';
import { readIdempotencyKey } from '../idempotency.ts';
import { addressCaller, limitRate } from '../rate-limits.ts';
import type { RateLimitName } from '../rate-limits.ts';
import { readId } from './read-call.ts';
import type { Call, Params } from './read-call.ts';

/**
 * How a caller authenticates. `account`: a key, or a session that holds one. `session`: a session only. `creator`: a session
 * of a creator, and `operator`: one of the operator, which count nowhere else. `provider`: the handler verifies the signature
 * over the raw body.
 */
export type Auth = 'account' | 'session' | 'creator' | 'operator' | 'sdk' | 'none' | 'provider';

/** A request before its checks. */
interface Request {
  readonly ctx: HttpContext;
  readonly deps: HttpDeps;
  readonly method: string;
  readonly params: Params;
}

/** Reads the input of the call with these dependencies. Throws 400, 404, 413, 415 or 503. */
type ReadCall<C> = (deps: HttpDeps, bodyLimitBytes: number) => Promise<C>;

/** Who calls a route. `Extra` is what its handlers learn of the caller, `Body` what its bodies have at least. */
export interface CallerRule<Extra, Body = unknown> {
  readonly auth: Auth;
  /** The permission that an account key or a session needs; null for none, and for every other kind of caller. */
  readonly permission: Permission | null;
  /** The rate limit that responds with 429; null for none. */
  readonly rateLimitName: RateLimitName | null;
  /** Whether calls count towards the limit of their address, before anything else is done. */
  readonly limitsAddress: boolean;
  /** The paths of its routes. Another one is refused when the route is declared. */
  readonly paths: RegExp;
  /**
   * Checks a call in the order that the contract promises: 401, 403, 400, 404. The 429 of an account comes after the format of its
   * key; limits of what a call names come after the check that reads it.
   */
  readonly check: <C extends Call & { readonly body: Body }>(
    request: Request,
    read: ReadCall<C>,
  ) => Promise<C & Extra>;
  /** Returns whose idempotency keys a POST takes. Absent: a POST takes none. */
  readonly idempotencyAccount?: (extra: Extra) => AccountId;
  /** Returns who shares the calls that may run at the same time, for routes whose `errors` have `unavailable`. Absent: its calls take no slot. */
  readonly openCall?: (call: Call & Extra) => string;
  /** Returns which creator calls: creators share the calls of them that may run at the same time. */
  readonly creatorCall?: (call: Call & Extra) => string;
  /** Returns who shares the files that may be made and sent at the same time. Absent: its routes make none. */
  readonly fileHolder?: (call: Call & Extra) => string;
}

/** The paths of an app. Only `accountApp` checks that the app belongs to the account. */
const APP_PATHS = /^\/apps\/:appId(\/|$)/;
const OTHER_PATHS = /^(?!.*\/:appId)/;

/** Returns the dependencies of a call that may change something: audit rows name who calls. */
function actingDeps({ ctx, deps, method }: Request, actor: Actor): HttpDeps {
  if (method === 'GET') return deps;
  const named = { ...actor, requestId: ctx.state.requestId };
  const { sql, patientSql } = deps;
  return {
    ...deps,
    sql: sql.actingAs(named),
    patientSql: patientSql.actingAs(named),
  };
}

/** Returns how audit rows name the caller. */
function actorOf({ keyId, session: held }: Caller): Actor {
  return held === null ? { kind: 'key', keyId } : { kind: 'session', keyId, sessionId: held.id };
}

/** A request without an account key: its statements use the share of the pool that such calls have. */
function withoutKey<R extends Request>(request: R): R {
  const { deps } = request;
  return { ...request, deps: { ...deps, sql: deps.intake.sql } };
}

const OF_ACCOUNT = { auth: 'account', rateLimitName: 'account', limitsAddress: false } as const;

interface AccountExtra {
  readonly caller: Caller;
}

/**
 * Returns a call as it acts with a permission that its body needs besides that of the route: audit rows, too, name the key that pays.
 * Throws 403 if the caller lacks the permission.
 */
export function withPermission<C extends Call & AccountExtra>(call: C, permission: Permission): C {
  const caller = requirePermission(call.caller, permission);
  const { ctx, deps, params } = call;
  return { ...call, caller, deps: actingDeps({ ctx, deps, params, method: ctx.method }, actorOf(caller)) };
}

/** The same for several permissions, or none. What is written names the key that may pay, if paying is among them. */
export function withPermissions<C extends Call & AccountExtra>(
  call: C,
  permissions: ReadonlySet<Permission>,
): C {
  const others = [...permissions].filter((permission) => permission !== 'payout');
  for (const permission of others) requirePermission(call.caller, permission);
  return permissions.has('payout') ? withPermission(call, 'payout') : call;
}

/** Whether members who are limited to some apps are refused. */
interface Whole {
  readonly wholeAccount?: boolean;
}

/** An account key or a session with the permission, for what does not belong to one app. A POST honours `Idempotency-Key`. */
export function account(
  permission: Permission,
  { wholeAccount = false }: Whole = {},
): CallerRule<AccountExtra> {
  return {
    ...OF_ACCOUNT,
    permission,
    paths: OTHER_PATHS,
    idempotencyAccount: ({ caller }) => caller.accountId,
    check: async (request, read) => {
      const caller = requirePermission(await authenticateAccount(request.ctx, request.deps), permission);
      if (wholeAccount) requireWholeAccount(caller);
      const deps = actingDeps(request, actorOf(caller));
      // A malformed key is a 400 even if the app does not exist, so it is read before the app is looked up.
      if (request.method === 'POST') readIdempotencyKey(request.ctx);
      return { ...(await read(deps, ACCOUNT_BODY_BYTES)), caller };
    },
  };
}

interface AppExtra extends AccountExtra {
  /** The app in the path. It belongs to the caller's account. */
  readonly app: App;
}

/** An account key or a session with the permission, for one app of the account. A POST honours `Idempotency-Key`. */
export function accountApp(permission: Permission): CallerRule<AppExtra> {
  const any = account(permission);
  return {
    ...any,
    paths: APP_PATHS,
    fileHolder: ({ caller }) => caller.accountId,
    check: async (request, read) => {
      const call = await any.check(request, read);
      const appId = readId('app', request.params['appId']);
      requireApp(call.caller, appId);
      const app = foundOrThrow(await findApp(call.deps.sql, call.caller.accountId, appId));
      request.ctx.state.appId = app.id;
      return { ...call, app };
    },
  };
}

interface SessionExtra extends AccountExtra {
  readonly session: Session;
}

/**
 * A session of the console, which no key is. An `:accountId` in the path is that of the session: any other one is a 404.
 * `addressLimit` is a limit per client address, besides that of the session. `managesMembers`: only who manages the members.
 */
export function consoleSession(
  permission: Permission | null,
  {
    addressLimit,
    wholeAccount = false,
    managesMembers: needsManager = false,
  }: Whole & { readonly addressLimit?: RateLimitName; readonly managesMembers?: boolean } = {},
): CallerRule<SessionExtra> {
  return {
    auth: 'session',
    permission,
    rateLimitName: 'account',
    limitsAddress: false,
    paths: OTHER_PATHS,
    fileHolder: ({ caller }) => caller.accountId,
    check: async (request, read) => {
      const { ctx, deps, params } = request;
      const caller = await authenticateSession(ctx, deps);
      if (permission !== null) requirePermission(caller, permission);
      if (wholeAccount) requireWholeAccount(caller);
      if (needsManager && !managesMembers(caller.session)) {
        throw new ApiError('forbidden', {
          detail:
            'Only an owner of the account, or who signed in with a link of the operator, manages its members.',
        });
      }
      if (addressLimit !== undefined) limitRate(ctx, deps.rateLimits, addressLimit, addressCaller(ctx.ip));
      const call = await read(actingDeps(request, actorOf(caller)), OPEN_BODY_BYTES);
      const { accountId } = params;
      if (accountId !== undefined && accountId !== caller.accountId) throw notFound();
      return { ...call, caller, session: caller.session };
    },
  };
}

interface CreatorExtra {
  readonly session: CreatorSession;
}

const OF_CREATOR = {
  auth: 'creator',
  permission: null,
  rateLimitName: 'account',
  limitsAddress: true,
  paths: /^\/creator(\/|$)/,
} as const;

/** A session of a creator. */
export const creatorSession: CallerRule<CreatorExtra> = {
  ...OF_CREATOR,
  creatorCall: ({ session }) => session.affiliateId,
  check: async (request, read) => {
    const own = { ...request, deps: { ...request.deps, sql: request.deps.creatorSql } };
    const held = await authenticateCreator(own.ctx, own.deps);
    const { id: sessionId, affiliateId } = held;
    const deps = actingDeps(own, { kind: 'creator', affiliateId, sessionId });
    return { ...(await read(deps, OPEN_BODY_BYTES)), session: held };
  },
};

export interface CreatorPageExtra {
  /** Whose numbers the route returns. */
  readonly creator: Creator;
  /** The app of the creator, and its account. */
  readonly app: App;
  readonly accountId: AccountId;
}

/** The creator of a session, on the creator's own page. */
export const creatorOfPage: CallerRule<CreatorPageExtra> = {
  ...OF_CREATOR,
  creatorCall: ({ creator }) => creator.affiliateId,
  fileHolder: ({ creator }) => creator.affiliateId,
  check: async (request, read) => {
    const call = await creatorSession.check(request, read);
    const { accountId, appId } = call.session;
    const app = foundOrThrow(await findApp(call.deps.sql, accountId, appId));
    return { ...call, creator: call.session, app, accountId };
  },
};

const reader = accountApp('read');

/** The founder of a creator's app, who sees the page of that creator. */
export const founderOfPage: CallerRule<CreatorPageExtra> = {
  ...OF_ACCOUNT,
  permission: reader.permission,
  paths: /^\/apps\/:appId\/affiliates\/:affiliateId\/creator(\/|$)/,
  fileHolder: ({ accountId }) => accountId,
  check: async (request, read) => {
    const call = await reader.check(request, read);
    const affiliateId = readId('affiliate', request.params['affiliateId']);
    const shown = foundOrThrow(await findCreator(call.deps.sql, { appId: call.app.id, affiliateId }));
    return { ...call, creator: shown, accountId: call.caller.accountId };
  },
};

/** A session of the operator. */
export const operatorSession: CallerRule<{ readonly session: OperatorSession }> = {
  auth: 'operator',
  permission: null,
  rateLimitName: 'account',
  limitsAddress: true,
  paths: /^\/operator(\/|$)/,
  check: async (request, read) => {
    const held = await authenticateOperator(request.ctx, request.deps);
    const deps = actingDeps(request, { kind: 'operator', sessionId: held.id });
    return { ...(await read(deps, OPEN_BODY_BYTES)), session: held };
  },
};

interface SdkExtra {
  /** The app that the SDK key belongs to. */
  readonly appId: AppId;
  readonly keyKind: SdkKeyKind;
}

/**
 * An SDK key. Calls are limited per device. `addressLimit` is a limit per app and client address, besides that of the device,
 * which the caller invents.
 */
export function sdkKey({ addressLimit }: { readonly addressLimit?: RateLimitName } = {}): CallerRule<
  SdkExtra,
  { readonly deviceId: string }
> {
  return {
    auth: 'sdk',
    permission: null,
    rateLimitName: 'sdk',
    limitsAddress: true,
    paths: /^\/sdk\//,
    openCall: ({ appId }) => appId,
    check: async (request, read) => {
      const { ctx, deps } = withoutKey(request);
      const { appId, keyKind } = await authenticateSdk(ctx, deps);
      if (addressLimit !== undefined)
        limitRate(ctx, deps.rateLimits, addressLimit, `${appId} ${addressCaller(ctx.ip)}`);
      const call = await read(deps, OPEN_BODY_BYTES);
      limitRate(ctx, deps.rateLimits, 'sdk', `${appId} ${call.body.deviceId}`);
      return { ...call, appId, keyKind };
    },
  };
}

/**
 * Anybody: no key is needed. The app that such a call names may be invented, so its address (IPv6: its /56) has the share of the
 * calls that run at the same time. `limitsAddress` is false for what a balancer asks for, and for what counts itself.
 */
export function anyone({
  limitsAddress = true,
}: { readonly limitsAddress?: boolean } = {}): CallerRule<object> {
  return {
    auth: 'none',
    permission: null,
    rateLimitName: null,
    limitsAddress,
    paths: OTHER_PATHS,
    openCall: ({ ctx }) => addressSite(ctx.ip) ?? ctx.ip,
    check: (request, read) => read(withoutKey(request).deps, OPEN_BODY_BYTES),
  };
}

/** A billing provider. The handler reads the raw body and verifies its signature. */
export const billingProvider: CallerRule<object> = {
  auth: 'provider',
  permission: null,
  rateLimitName: null,
  limitsAddress: false,
  paths: OTHER_PATHS,
  check: (request, read) => read(withoutKey(request).deps, OPEN_BODY_BYTES),
};
