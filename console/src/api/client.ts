import createClient from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

export type Schemas = components['schemas'];
export type Session = Schemas['Session'];
export type Setup = Schemas['Setup'];
export type Permission = Session['permissions'][number];

/** The address of `/console/`, and that of the service, also behind the prefix of a proxy. */
export const consoleUrl = new URL(document.baseURI);
export const serviceUrl = new URL('..', consoleUrl);

/** Sends a request, unless it was sent while the page was loading (early.ts). */
async function sendOnce(request: Request): Promise<Response> {
  // A change, such as signing in to another account, makes the answers of before wrong.
  if (request.method !== 'GET') globalThis.earlyAnswers?.clear();
  const early = globalThis.earlyAnswers?.get(request.url);
  if (early === undefined) return await fetch(request);
  globalThis.earlyAnswers?.delete(request.url);
  return await early;
}

/** What a page does about its session (kept-session.ts). */
interface SessionKeeper {
  /** The path of the session in the API, without a slash at its start: with it, a session begins, and with `/end` behind it, it ends. */
  readonly path: string;
  /** Waits until the person whose session has ended is signed in again. Returns false if the page does not wait. */
  readonly renew: () => Promise<boolean>;
  /** Called when a call of this tab has begun or ended a session. */
  readonly onChanged: (what: 'begun' | 'ended') => void;
}

let keeper: SessionKeeper | null = null;

/** Lets a keeper decide about each call that is refused because the session has ended. */
export function keepSessionWith(next: SessionKeeper): void {
  keeper = next;
}

/**
 * Sends a request. One that is refused because the session has ended is sent a second time, as it was, once the same person is signed
 * in again.
 */
async function send(request: Request): Promise<Response> {
  if (keeper === null) return await sendOnce(request);
  const { href } = new URL(keeper.path, serviceUrl);
  // The calls that begin and end a session need none.
  if (request.url === href || request.url === `${href}/end`) {
    const response = await sendOnce(request);
    if (response.ok && request.method === 'POST') keeper.onChanged(request.url === href ? 'begun' : 'ended');
    return response;
  }
  // A copy of a body is a stream, which is sent without its length.
  const body = await request.text();
  const copy = () => (body === '' ? request.clone() : new Request(request, { method: request.method, body }));
  const response = await sendOnce(copy());
  if (response.status !== 401) return response;
  return (await keeper.renew()) ? await fetch(copy()) : response;
}

/**
 * Creates a typed client of the API, which puts `prefix` before every path. The header shows that a page of the service calls,
 * where browsers send nothing else.
 */
export const createApi = (prefix: string) =>
  createClient<paths, 'application/json' | 'application/problem+json'>({
    baseUrl: serviceUrl.href.replace(/\/$/, '') + prefix,
    headers: { 'Tributary-Console': '1' },
    fetch: send,
  });

export const api = createApi('');

/** An error that the service returned, with its own words. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: string;
  readonly status: number;
  readonly requestId: string | null;
  readonly fields: readonly { readonly path: string; readonly message: string }[];
  /** What has already what the call would create. */
  readonly existingId: string | null;

  constructor(status: number, body: Partial<Schemas['Problem']>) {
    super(body.detail ?? body.title ?? 'The service did not respond. Check the connection and try again.');
    this.code = body.code ?? 'unreachable';
    this.status = status;
    this.requestId = body.requestId ?? null;
    this.fields = body.errors ?? [];
    this.existingId = body.existingId ?? null;
  }

  /** Whether the service has refused the call. Otherwise it may have done what it was asked. */
  get isRefusal(): boolean {
    return this.status >= 400 && this.status < 500;
  }

  /** Returns the same problem with other invalid fields. */
  withFields(errors: NonNullable<Schemas['Problem']['errors']>): Problem {
    const { code, status, requestId, existingId, message: detail } = this;
    return new Problem(status, {
      ...given({ requestId: requestId ?? undefined, existingId: existingId ?? undefined }),
      code: code as Schemas['Problem']['code'],
      detail,
      errors,
    });
  }
}

interface Answer<T> {
  readonly data?: T | undefined;
  readonly error?: unknown;
  readonly response: Response;
}

/** Returns the body of a response. Throws a `Problem` for an error and for no response. */
export async function read<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await call.catch((): never => {
    throw new Problem(0, {});
  });
  if (data !== undefined) return data;
  throw new Problem(response.status, typeof error === 'object' && error !== null ? error : {});
}

/** Returns what is given of a query: without the fields that are undefined. */
export function given<T extends object>(query: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** Asks a list for CSV instead of JSON. */
export const AS_CSV = { headers: { Accept: 'text/csv' }, parseAs: 'text' } as const;

/** Returns a part of a list as CSV. Throws like `read`. */
export async function readCsv(
  call: Promise<Answer<string>>,
): Promise<{ readonly text: string; readonly nextCursor: string | null }> {
  const text = await read(call);
  return { text, nextCursor: (await call).response.headers.get('X-Next-Cursor') };
}
