import { sessionCookieName } from '../../src/http/session-cookie.ts';
import type { TestApi } from './api.ts';

/** The name of the session cookie of the test API, whose public address has https. */
export const COOKIE = sessionCookieName('https://api.example.test');

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
