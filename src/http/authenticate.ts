import { findAccountCaller } from '../db/account-keys.ts';
import type { AccountCaller } from '../db/account-keys.ts';
import { findCreatorSession } from '../db/creator-sessions.ts';
import type { CreatorSession } from '../db/creator-sessions.ts';
import { findOperatorSession } from '../db/operator-sessions.ts';
import type { OperatorSession } from '../db/operator-sessions.ts';
import { findSession } from '../db/sessions.ts';
import type { Session } from '../db/sessions.ts';
import { findSdkCaller } from '../db/sdk-keys.ts';
import type { SdkCaller } from '../db/sdk-keys.ts';
import { keyKind } from '../domain/keys.ts';
import type { Permission } from '../domain/keys.ts';
import type { AppId } from '../domain/ids.ts';
import { RAISED_MS } from '../domain/sessions.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, notFound } from './errors.ts';
import { countAsFailed, findByCredential } from './failed-calls.ts';
import { limitRate } from './rate-limits.ts';
import { readSessionToken, refuseOtherOrigins } from './session-cookie.ts';

/** The kinds of callers that have a key. */
type CallerKind = 'account' | 'sdk';

/** The same text for every invalid key, so that an attacker learns nothing. */
const UNAUTHORIZED: Readonly<Record<CallerKind, string>> = {
  account: 'The account key is missing or invalid. Send it as "Authorization: Bearer tri_sk_live_…".',
  sdk: 'The SDK key is missing or invalid. Send it as "Authorization: Bearer pk_live_…".',
};

/** The text for a key in the format of the other kind. It says nothing about whether the key is valid. */
const OTHER_KIND: Readonly<Record<CallerKind, string>> = {
  account: 'This is an SDK key. Under /apps, send an account key: "Authorization: Bearer tri_sk_live_…".',
  sdk: 'This is an account key. Under /sdk, send an SDK key: "Authorization: Bearer pk_live_…".',
};

function unauthorized(kind: CallerKind, detail = UNAUTHORIZED[kind]): ApiError {
  return new ApiError('unauthorized', {
    detail,
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}

/** Throws the 401 of a call without a key or session, which counts against its address; 429 over that limit. */
function refuse(ctx: HttpContext, deps: HttpDeps, kind: CallerKind, detail?: string): never {
  countAsFailed(ctx, deps);
  throw unauthorized(kind, detail);
}

/** Returns the bearer key of the request. Throws 401 if it is not in the format of that kind. */
function bearerKey(ctx: HttpContext, deps: HttpDeps, kind: CallerKind): string {
  const [, key] = /^Bearer +(\S+) *$/i.exec(ctx.get('Authorization')) ?? [];
  const sentKind = key === undefined ? null : keyKind(key);
  if (key === undefined || sentKind === null || (sentKind === 'account' ? 'account' : 'sdk') !== kind)
    return refuse(ctx, deps, kind, sentKind === null ? UNAUTHORIZED[kind] : OTHER_KIND[kind]);
  return key;
}

/** A caller with an account key, or with a session that holds one. */
export interface Caller extends AccountCaller {
  /** Null for a caller with a key. */
  readonly session: Session | null;
}

/**
 * Returns the account of the request's key or session. Throws 401 for neither. The rate limit applies before the key is
 * looked up, so a flood does not reach the database.
 */
export async function authenticateAccount(ctx: HttpContext, deps: HttpDeps): Promise<Caller> {
  const token = readSessionToken(ctx, deps.publicUrl);
  if (token !== null) return await sessionCaller(ctx, deps, token);
  const key = bearerKey(ctx, deps, 'account');
  limitRate(ctx, deps.rateLimits, 'account', key);
  const caller = await findByCredential(ctx, deps, key, () => findAccountCaller(deps.sql, key, deps.now()));
  if (caller === undefined) throw unauthorized('account');
  ctx.state.accountId = caller.accountId;
  return { ...caller, session: null };
}

/** Returns the caller of a request's session. Throws 401 for a caller without one, also for one with a key. */
export async function authenticateSession(
  ctx: HttpContext,
  deps: HttpDeps,
): Promise<Caller & { readonly session: Session }> {
  const token = readSessionToken(ctx, deps.publicUrl);
  if (token === null) return refuse(ctx, deps, 'account', NO_SESSION);
  return await sessionCaller(ctx, deps, token);
}

const NO_SESSION = 'This route takes no key. Sign in to the console at /console, whose session it needs.';

/** Returns the 401 of a session that has ended, by itself or with its key: that of a member ends with the removal. */
export function sessionEnded(): ApiError {
  return unauthorized('account', 'The session has ended, or its key has. Sign in again.');
}

async function sessionCaller(
  ctx: HttpContext,
  deps: HttpDeps,
  token: string,
): Promise<Caller & { readonly session: Session }> {
  refuseOtherOrigins(ctx, deps.publicUrl);
  limitRate(ctx, deps.rateLimits, 'account', token);
  const session = await findByCredential(ctx, deps, token, () => findSession(deps.sql, token, deps.now()));
  if (session === undefined) throw sessionEnded();
  ctx.state.accountId = session.accountId;
  const { accountId, keyId, permissions } = session;
  return { accountId, keyId, permissions, session };
}

const NO_CREATOR_SESSION =
  'This route takes no key. It needs the session of a creator: open a sign-in link, which the founder of the app creates.';

/**
 * Returns the creator's session of a request. Throws 401 for a caller without one: an account key, an SDK key and a session of
 * an account are none.
 */
export async function authenticateCreator(ctx: HttpContext, deps: HttpDeps): Promise<CreatorSession> {
  const token = readSessionToken(ctx, deps.publicUrl, 'creator');
  if (token === null) return refuse(ctx, deps, 'account', NO_CREATOR_SESSION);
  refuseOtherOrigins(ctx, deps.publicUrl);
  limitRate(ctx, deps.rateLimits, 'account', token);
  const session = await findByCredential(ctx, deps, token, () =>
    findCreatorSession(deps.sql, token, deps.now()),
  );
  if (session === undefined)
    throw unauthorized(
      'account',
      'The session has ended. Ask the founder of the app for a new sign-in link.',
    );
  ctx.state.accountId = session.accountId;
  ctx.state.appId = session.appId;
  return session;
}

const NO_OPERATOR_SESSION =
  'This route takes no key. It needs the session of the operator: `npm run -s admin -- console --operator` prints a sign-in link.';

/**
 * Returns the operator's session of a request. Throws 401 for a caller without one: a key, a session of an account and that of
 * a creator are none.
 */
export async function authenticateOperator(ctx: HttpContext, deps: HttpDeps): Promise<OperatorSession> {
  const token = readSessionToken(ctx, deps.publicUrl, 'operator');
  if (token === null) return refuse(ctx, deps, 'account', NO_OPERATOR_SESSION);
  refuseOtherOrigins(ctx, deps.publicUrl);
  limitRate(ctx, deps.rateLimits, 'account', token);
  const session = await findByCredential(ctx, deps, token, () =>
    findOperatorSession(deps.sql, token, deps.now()),
  );
  if (session === undefined)
    throw unauthorized(
      'account',
      'The session has ended. Print a new link with `tributary console --operator`.',
    );
  return session;
}

/**
 * Returns the caller as it acts with a permission. Throws 403 if it lacks the permission. A session pays only after a key
 * with `payout` was entered, and then acts with that key. A handler calls `withPermission`: audit rows then name that key, too.
 */
export function requirePermission(caller: Caller, permission: Permission): Caller {
  const member = caller.session?.member ?? null;
  const isGranted = caller.permissions.includes(permission);
  if (member !== null && !isGranted) {
    throw new ApiError('forbidden', {
      detail: `The role ${member.role} lacks the permission "${permission}". An owner of the account can give you another role.`,
    });
  }
  if (permission === 'payout' && caller.session !== null) {
    const { raisedKeyId } = caller.session;
    if (raisedKeyId === null) throw notRaised(caller.session);
    return { ...caller, keyId: raisedKeyId };
  }
  if (isGranted) return caller;
  throw new ApiError('forbidden', {
    detail: `The key lacks the permission "${permission}". Use a key that has it.`,
  });
}

/** Returns the 403 of a session that may not pay at present, with what the person can do. */
export function notRaised({ member }: Pick<Session, 'member'>): ApiError {
  if (member === null) return new ApiError('session_not_raised');
  return new ApiError('session_not_raised', {
    detail:
      'Paying needs one of your passkeys, or a link that was mailed to you and opened in this browser within the last 15 minutes: `POST /session/mail-link` mails one. A key with the permission "payout" does, too. A copied link does not.',
  });
}

/**
 * Throws 403 if a session may not give somebody the right to pay, by a key or as a member: who finds a browser that was left open would
 * give it to themselves. A session that may pay gives it, and one of a link of the operator for 15 minutes after the sign-in.
 * A copied link never lets a member pay, so its session has to be raised first, however new it is.
 */
export function requireMayGivePayout(session: Session, now: number): void {
  if (session.raisedKeyId !== null) return;
  if (session.member !== null) throw notRaised(session);
  if (now <= session.createdAt + RAISED_MS) return;
  throw new ApiError('session_not_raised', {
    detail:
      'The right to pay is given within 15 minutes after the sign-in. Sign in again, or enter a key with the permission "payout".',
  });
}

/** Throws 404 for an app that the caller does not see: a member can be limited to some. */
export function requireApp({ session }: Pick<Caller, 'session'>, appId: AppId): void {
  if (session?.member?.appIds?.includes(appId) === false) throw notFound();
}

/** Throws 403 for a member who is limited to some apps, where a call is about the whole account. */
export function requireWholeAccount({ session }: Pick<Caller, 'session'>): void {
  if ((session?.member?.appIds ?? null) === null) return;
  throw new ApiError('forbidden', {
    detail: 'You are a member for some apps only, and this is about the account.',
  });
}

/** Whether a session manages the members: that of an owner, and that of a link which the operator created. */
export function managesMembers({ member, isConsole }: Pick<Session, 'member' | 'isConsole'>): boolean {
  return member === null ? isConsole : member.role === 'owner';
}

/** Whether the caller may pay at this moment, on a route that does not need it. */
export function mayPay({ permissions, session }: Caller): boolean {
  return session === null ? permissions.includes('payout') : session.raisedKeyId !== null;
}

/** Returns the app and the kind of the request's SDK key. Throws 401 for no valid key. */
export async function authenticateSdk(ctx: HttpContext, deps: HttpDeps): Promise<SdkCaller> {
  const key = bearerKey(ctx, deps, 'sdk');
  const caller = await findByCredential(ctx, deps, key, () => findSdkCaller(deps.sql, key, deps.now()));
  if (caller === undefined) throw unauthorized('sdk');
  ctx.state.appId = caller.appId;
  return caller;
}
