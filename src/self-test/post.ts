/** What came back: an answer of somebody, or none and why. */
export type PostResult =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** Where a redirect points; it is not followed, since no provider follows one. */
      readonly location: string | null;
      /** The JSON of the answer; undefined when it is none. */
      readonly json: unknown;
      /** How long it took, in whole milliseconds. */
      readonly tookMs: number;
    }
  | { readonly kind: 'none'; readonly reason: string };

/** More than any answer of this service has. */
const MOST_CHARACTERS = 64 * 1024;

/** The beginning of a body, so that whoever answers can't fill the memory. */
async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true });
    if (text.length > MOST_CHARACTERS) break;
  }
  return text.slice(0, MOST_CHARACTERS);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : '';
}

/** Why there was no answer, for whoever has to mend it. */
function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer came within ${(timeoutMs / 1000).toFixed(1)} s`;
  }
  const code = codeOf(error);
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name is not known to DNS';
    case 'ECONNREFUSED':
      return 'nothing listens there';
    default:
      return code === '' ? 'the connection failed' : `the connection failed (${code})`;
  }
}

/** Sends one request, with a body as a POST, and reads what comes back. Never throws. */
export async function send(
  url: string,
  request: { readonly headers?: Readonly<Record<string, string>>; readonly body?: Buffer },
  timeoutMs: number,
): Promise<PostResult> {
  const { headers = {}, body } = request;
  const startedAt = performance.now();
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: new Uint8Array(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const json = jsonOf(await beginningOf(response));
    const tookMs = Math.round(performance.now() - startedAt);
    return {
      kind: 'answer',
      status: response.status,
      location: response.headers.get('location'),
      json,
      tookMs,
    };
  } catch (error) {
    return { kind: 'none', reason: reasonOf(error, timeoutMs) };
  }
}
