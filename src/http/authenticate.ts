import { findAccountCaller } from '../db/account-keys.ts';
import type { AccountCaller } from '../db/account-keys.ts';
import { findSdkCaller } from '../db/sdk-keys.ts';
import type { SdkCaller } from '../db/sdk-keys.ts';
import { keyKind } from '../domain/keys.ts';
import type { Permission } from '../domain/keys.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';
import { limitRate } from './rate-limits.ts';

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

/** Returns the bearer key of the request. Throws 401 if it is not in the format of that kind. */
function bearerKey(ctx: HttpContext, kind: CallerKind): string {
  const [, key] = /^Bearer +(\S+) *$/i.exec(ctx.get('Authorization')) ?? [];
  const sentKind = key === undefined ? null : keyKind(key);
  if (key === undefined || sentKind === null || (sentKind === 'account' ? 'account' : 'sdk') !== kind)
    throw unauthorized(kind, sentKind === null ? UNAUTHORIZED[kind] : OTHER_KIND[kind]);
  return key;
}

/**
 * Returns the account of the request's key. Throws 401 for no valid key. The rate limit applies before the key is looked
 * up, so a flood does not reach the database.
 */
export async function authenticateAccount(ctx: HttpContext, deps: HttpDeps): Promise<AccountCaller> {
  const key = bearerKey(ctx, 'account');
  await limitRate(ctx, deps.rateLimits, 'account', key);
  const caller = await findAccountCaller(deps.sql, key, deps.now());
  if (caller === undefined) throw unauthorized('account');
  ctx.state.accountId = caller.accountId;
  return caller;
}

/** Throws 403 if the key lacks the permission. */
export function requirePermission(caller: AccountCaller, permission: Permission): void {
  if (caller.permissions.includes(permission)) return;
  throw new ApiError('forbidden', {
    detail: `The key lacks the permission "${permission}". Use a key that has it.`,
  });
}

/** Returns the app and the kind of the request's SDK key. Throws 401 for no valid key. */
export async function authenticateSdk(ctx: HttpContext, deps: HttpDeps): Promise<SdkCaller> {
  const caller = await findSdkCaller(deps.sql, bearerKey(ctx, 'sdk'), deps.now());
  if (caller === undefined) throw unauthorized('sdk');
  ctx.state.appId = caller.appId;
  return caller;
}
