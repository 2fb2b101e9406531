import { request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';

export interface Visited {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The `Location`, or null. */
  readonly location: string | null;
  /** What the query of the location says. */
  readonly claimToken: string | null;
  readonly via: string | null;
}

/** What a browser does when a link is tapped, any host and headers included. Redirects are not followed. */
export async function visit(
  apiUrl: string,
  path: string,
  options: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Visited> {
  const { hostname, port } = new URL(apiUrl);
  const { method = 'GET', headers = {} } = options;
  return await new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const location = response.headers.location ?? null;
        const query = location === null ? null : new URL(location).searchParams;
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString('utf8'),
          location,
          claimToken: query?.get('claim_token') ?? null,
          via: query?.get('via') ?? null,
        });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}
