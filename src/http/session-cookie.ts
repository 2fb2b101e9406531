import { CREATOR_SESSION_MAX_MS, isToken, OPERATOR_SESSION_MS, SESSION_MAX_MS } from '../domain/sessions.ts';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/**
 * The kinds of sessions. Each has a cookie of its own, so that a founder who opens the link of a creator stays signed in as
 * founder.
 */
export type SessionKind = 'account' | 'creator' | 'operator';

const COOKIES: Readonly<Record<SessionKind, { readonly name: string; readonly maxMs: number }>> = {
  account: { name: 'tributary', maxMs: SESSION_MAX_MS },
  creator: { name: 'tributary-creator', maxMs: CREATOR_SESSION_MAX_MS },
  operator: { name: 'tributary-operator', maxMs: OPERATOR_SESSION_MS },
};

/**
 * Returns the name of a session's cookie. With https, the prefix makes browsers accept it only with `Secure`, for this
 * host alone and for all paths, so a sibling host or a page over http cannot set it.
 */
export function sessionCookieName(publicUrl: string, kind: SessionKind = 'account'): string {
  return `${isHttps(publicUrl) ? '__Host-' : ''}${COOKIES[kind].name}`;
}

const isHttps = (publicUrl: string): boolean => publicUrl.startsWith('https:');

/** Returns the session token of a request. Null without one, and beside an `Authorization` header, which then counts alone. */
export function readSessionToken(
  ctx: HttpContext,
  publicUrl: string,
  kind: SessionKind = 'account',
): string | null {
  if (ctx.get('Authorization') !== '') return null;
  const token = ctx.cookies.get(sessionCookieName(publicUrl, kind)) ?? '';
  return isToken(token) ? token : null;
}

/** Returns the headers that store the token in the browser, or that remove it. */
export function sessionCookie(
  publicUrl: string,
  token: string | null,
  kind: SessionKind = 'account',
): Record<string, string> {
  const attributes = [
    `${sessionCookieName(publicUrl, kind)}=${token ?? ''}`,
    'Path=/',
    `Max-Age=${token === null ? 0 : COOKIES[kind].maxMs / 1000}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(isHttps(publicUrl) ? ['Secure'] : []),
  ];
  return { 'Set-Cookie': attributes.join('; ') };
}

/** The header that the console sends. Another origin cannot send it without a permission that the service never gives. */
export const CONSOLE_HEADER = 'Tributary-Console';

/**
 * Throws 403 if the request can come from a page of another origin. `SameSite` is not enough: a page on another port of the
 * same host is the same site. Browsers send `Sec-Fetch-Site` over https and to this machine. Over http in a network they
 * send only `Origin`, and not with a GET, which then needs the header of the console.
 */
export function refuseOtherOrigins(ctx: HttpContext, publicUrl: string): void {
  const site = ctx.get('Sec-Fetch-Site');
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
  const isOwn =
    site === '' ? isOwnOrigin(ctx, publicUrl, isRead) : site === 'same-origin' || (site === 'none' && isRead);
  if (!isOwn) throw new ApiError('cross_origin');
}

function isOwnOrigin(ctx: HttpContext, publicUrl: string, isRead: boolean): boolean {
  const origin = ctx.get('Origin');
  if (origin === '') return isRead && ctx.get(CONSOLE_HEADER) !== '';
  // A proxy may send another Host, so the public address counts, too. A page over http is never one of a service over https.
  return (
    origin === new URL(publicUrl).origin || (!isHttps(publicUrl) && origin === `http://${ctx.get('Host')}`)
  );
}

/** Throws 403 for a request without a session that a page of another origin makes: it could sign its visitor in as somebody else. */
export function refuseForeignSignIn(ctx: HttpContext, publicUrl: string): void {
  const isFromPage = ctx.get('Sec-Fetch-Site') !== '' || ctx.get('Origin') !== '';
  if (isFromPage) refuseOtherOrigins(ctx, publicUrl);
}
