import { Agent, request } from 'node:http';

/** The response to a request, as far as the checks need it. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly payoutId: string | undefined;
  /** The hash of a file of a payout run. */
  readonly sha256: string | undefined;
  readonly body: Buffer;
}

export interface RequestOptions {
  readonly body?: Buffer | object;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the response may take, ms. */
  readonly timeoutMs?: number;
  /** Connections beside those of the others. */
  readonly agent?: Agent;
}

/** An export waits at most 20 s for its workflow, and then at most 30 s for a settlement that is running. */
const TIMEOUT_MS = 70_000;
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** Closes the connections that are kept open. */
export const closeConnections = (): void => agent.destroy();

/** The server had closed an idle connection at the moment at which it was used again. */
class IdleConnectionClosed extends Error {
  override readonly name = 'IdleConnectionClosed';
}

/**
 * Sends a request, again on another connection when an idle one was closed meanwhile. Rejects when the connection fails or
 * nothing is answered in time.
 */
export async function send(
  base: string,
  method: string,
  route: string,
  options: RequestOptions = {},
): Promise<Answer> {
  for (;;) {
    try {
      return await sendOnce(base, method, route, options);
    } catch (error) {
      if (!(error instanceof IdleConnectionClosed)) throw error;
    }
  }
}

async function sendOnce(
  base: string,
  method: string,
  route: string,
  { body, headers = {}, timeoutMs = TIMEOUT_MS, agent: chosen = agent }: RequestOptions,
): Promise<Answer> {
  const content = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const type =
    content === undefined ? {} : { 'content-type': 'application/json', 'content-length': content.length };
  const { hostname, port } = new URL(base);
  return await new Promise((resolve, reject) => {
    const options = { hostname, port, path: route, method, agent: chosen, headers: { ...type, ...headers } };
    const sent = request({ ...options, timeout: timeoutMs }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers['retry-after'],
          payoutId: response.headers['x-payout-id'] as string | undefined,
          sha256: response.headers['x-payout-sha256'] as string | undefined,
          body: Buffer.concat(parts),
        }),
      );
    });
    sent.on('timeout', () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const isIdle = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      reject(isIdle ? new IdleConnectionClosed(error.message, { cause: error }) : error);
    });
    sent.end(content);
  });
}

/**
 * Counts all answers, and keeps those that no client should get: anything but 2xx, 503 with `Retry-After` and what the
 * caller expects, and a connection that fails although its process runs.
 */
export class AnswerLog {
  readonly counts = new Map<string, number>();
  readonly bad: string[] = [];

  #count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Notes an answer. Returns whether the request is done: a client sends it again only after a 5xx. */
  answered(name: string, { status, retryAfter, body }: Answer, expected: readonly number[] = []): boolean {
    this.#count(`${name} ${status}`);
    if ((status >= 200 && status < 300) || expected.includes(status)) return true;
    if (status === 503 && retryAfter !== undefined) return false;
    this.bad.push(`${name}: ${status}, Retry-After ${retryAfter}: ${body.toString().slice(0, 300)}`);
    return status < 500;
  }

  /** Notes a connection that failed. `wasDown` says whether the process did not run all the time. */
  failed(name: string, error: unknown, wasDown: boolean): void {
    this.#count(`${name} ${wasDown ? 'process away' : 'connection failed'}`);
    if (!wasDown) this.bad.push(`${name}: the connection to a running process failed: ${String(error)}`);
  }

  lines(): string {
    return [...this.counts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, n]) => `${name}: ${n}`)
      .join(', ');
  }
}
