import { request } from 'node:http';
import { expectDescribed } from './conformance.ts';

export interface ApiResponse<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON, or null when the response is not JSON or has no body. */
  readonly body: T;
}

export interface RequestOptions {
  /** A string or a buffer is sent as it is, any other value as JSON. */
  readonly body?: unknown;
  /** A key to send as a bearer token. */
  readonly key?: string | null;
  /** Any headers, including `host`. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface RawResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends a request on a connection of its own and follows no redirect. `fetch` cannot set `host`. */
async function send(
  baseUrl: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer | undefined,
): Promise<RawResponse> {
  const { hostname, port } = new URL(baseUrl);
  return await new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const received = new Headers();
        for (const [name, values = []] of Object.entries(response.headersDistinct)) {
          for (const value of values) received.append(name, value);
        }
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: received, text });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Sends a request to the API. Throws when the description of the API does not allow the response. */
export async function sendRequest<T = Record<string, unknown>>(
  baseUrl: string,
  method: string,
  path: string,
  { body, key, headers }: RequestOptions = {},
): Promise<ApiResponse<T>> {
  const content =
    body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const response = await send(
    baseUrl,
    method,
    path,
    {
      ...(key === undefined || key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(content === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(content)) }),
      ...headers,
    },
    content,
  );
  expectDescribed(method, path, response);
  const isJson = (response.headers.get('content-type') ?? '').includes('json') && response.text !== '';
  return { ...response, body: (isJson ? JSON.parse(response.text) : null) as T };
}

export interface FollowedLink extends ApiResponse {
  /** The `Location` header, or null. */
  readonly location: string | null;
  /** The query parameter `claim_token` of the location, or null. */
  readonly claimToken: string | null;
  /** The query parameter `via` of the location, or null. */
  readonly via: string | null;
}

/** Opens a link as a browser does, without following the redirect. */
export async function followLink(
  baseUrl: string,
  path: string,
  { method = 'GET', headers = {} }: { readonly method?: string } & Pick<RequestOptions, 'headers'> = {},
): Promise<FollowedLink> {
  const response = await sendRequest(baseUrl, method, path, { headers });
  const location = response.headers.get('location');
  const query = location === null ? null : new URL(location).searchParams;
  return {
    ...response,
    location,
    claimToken: query?.get('claim_token') ?? null,
    via: query?.get('via') ?? null,
  };
}
