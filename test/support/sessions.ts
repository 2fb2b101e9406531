import { createOperatorLink } from '../../src/db/operator-sessions.ts';
import { sessionCookieName } from '../../src/http/session-cookie.ts';
import type { TestApi, TestApp } from './api.ts';

/** The address under which the service of a test is known. */
export const PUBLIC_URL = 'https://api.example.test';
/** The name of its session cookie. */
export const COOKIE = sessionCookieName(PUBLIC_URL);

/** The name of the cookie of a creator's session there. */
export const CREATOR_COOKIE = sessionCookieName(PUBLIC_URL, 'creator');

/** The name of the cookie of an operator's session there. */
export const OPERATOR_COOKIE = sessionCookieName(PUBLIC_URL, 'operator');

/** What a browser sends with a request that a page of the service makes. */
export const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };

/** Returns the `Cookie` header that a browser sends after this response. */
export function cookieOf(headers: Headers): string {
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  return cookie;
}

/** Signs in with an account key. Returns the headers of requests of that session. */
export async function signIn(
  api: Pick<TestApi, 'call'>,
  key: string,
): Promise<{ 'sec-fetch-site': string; cookie: string }> {
  const { status, headers, text } = await api.call('POST', '/session', { body: { key }, headers: OWN_PAGE });
  if (status !== 200) throw new Error(`POST /session: ${status} ${text}`);
  return { ...OWN_PAGE, cookie: cookieOf(headers) };
}

/** Creates a sign-in link of a creator. Returns its token. */
export async function creatorLink(
  api: Pick<TestApi, 'call'>,
  { appId, key }: Pick<TestApp, 'appId' | 'key'>,
  affiliateId: string,
): Promise<string> {
  const path = `/apps/${appId}/affiliates/${affiliateId}/sign-in-links`;
  const { status, body, text } = await api.call<{ url: string }>('POST', path, { key });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${text}`);
  return body.url.split('#token=')[1] ?? '';
}

/** Signs a creator in. Returns the headers of requests of that session. */
export async function signInCreator(
  api: Pick<TestApi, 'call'>,
  app: Pick<TestApp, 'appId' | 'key'>,
  affiliateId: string,
): Promise<{ 'sec-fetch-site': string; cookie: string }> {
  const body = { token: await creatorLink(api, app, affiliateId) };
  const { status, headers, text } = await api.call('POST', '/creator/session', { body, headers: OWN_PAGE });
  if (status !== 200) throw new Error(`POST /creator/session: ${status} ${text}`);
  return { ...OWN_PAGE, cookie: cookieOf(headers) };
}

/** Signs an operator in. Returns the headers of requests of that session. */
export async function signInOperator(
  api: Pick<TestApi, 'call' | 'sql' | 'clock'>,
): Promise<{ 'sec-fetch-site': string; cookie: string }> {
  const body = { token: await createOperatorLink(api.sql, api.clock.now) };
  const { status, headers, text } = await api.call('POST', '/operator/session', { body, headers: OWN_PAGE });
  if (status !== 200) throw new Error(`POST /operator/session: ${status} ${text}`);
  return { ...OWN_PAGE, cookie: cookieOf(headers) };
}
