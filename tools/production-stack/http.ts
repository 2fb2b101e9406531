import { Agent, request } from 'node:http';
import { failingChecks } from '../run-tool.ts';

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

export const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Sends a request on a connection that clients keep open. Rejects when the connection fails. */
export async function send(
  base: string,
  method: string,
  route: string,
  { body, headers = {} }: { body?: Buffer | object; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const content = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  return await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base);
    const type =
      content === undefined ? {} : { 'content-type': 'application/json', 'content-length': content.length };
    const sent = request(
      { hostname, port, path: route, method, agent, headers: { ...type, ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], text }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(content);
  });
}

/** Whether every check of the readiness at an address succeeds. */
export const isReady = async (base: string) =>
  await send(base, 'GET', '/readyz').then(
    ({ status, text }) => status === 200 && failingChecks(text)?.length === 0,
    () => false,
  );
