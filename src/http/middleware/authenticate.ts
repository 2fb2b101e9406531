import { findAccountCaller } from '../../db/account-keys.ts';
import type { AccountCaller } from '../../db/account-keys.ts';
import { findAppOfSdkKey } from '../../db/sdk-keys.ts';
import type { AppId } from '../../domain/ids.ts';
import { keyKind } from '../../domain/keys.ts';
import type { KeyKind, Permission } from '../../domain/keys.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { limitRate } from '../rate-limits.ts';

/** The same for every fault of a key, so that nothing can be probed; only the kind that is needed is told. */
const NEEDED: Readonly<Record<KeyKind, string>> = {
  account: 'This needs an account key, as "Authorization: Bearer tri_sk_live_…".',
  sdk: 'This needs the SDK key of an app, as "Authorization: Bearer pk_live_…".',
};

function unauthorized(kind: KeyKind): ApiError {
  return new ApiError('unauthorized', { detail: NEEDED[kind], headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** The key that the request carries, if it has the form of one of that kind. */
function bearerKey(ctx: HttpContext, kind: KeyKind): string {
  const [, key] = /^Bearer +(\S+) *$/i.exec(ctx.get('Authorization')) ?? [];
  if (key === undefined || keyKind(key) !== kind) throw unauthorized(kind);
  return key;
}

/** Who calls with an account key. 401 for no valid key. Counted before anything is looked up: a flood ends here. */
export async function authenticateAccount(ctx: HttpContext, deps: HttpDeps): Promise<AccountCaller> {
  const key = bearerKey(ctx, 'account');
  await limitRate(ctx, deps.rateLimits, 'account', key);
  const caller = await findAccountCaller(deps.sql, key, deps.now());
  if (caller === undefined) throw unauthorized('account');
  ctx.state.accountId = caller.accountId;
  return caller;
}

/** The 403 of a key that may not do what `permission` names. */
export function requirePermission(caller: AccountCaller, permission: Permission): void {
  if (caller.permissions.includes(permission)) return;
  throw new ApiError('forbidden', { detail: `This needs a key with the permission "${permission}".` });
}

/** Which app the SDK key belongs to. 401 for no valid key. */
export async function authenticateSdk(ctx: HttpContext, deps: HttpDeps): Promise<{ readonly appId: AppId }> {
  const appId = await findAppOfSdkKey(deps.sql, bearerKey(ctx, 'sdk'), deps.now());
  if (appId === undefined) throw unauthorized('sdk');
  ctx.state.appId = appId;
  return { appId };
}
