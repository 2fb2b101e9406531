import { DeadlineExceeded, withDeadline } from '../lib/deadline.ts';

/** The outcome of a request: a response of any status, or no response and the reason. */
export type SendResult =
  | {
      readonly kind: 'response';
      readonly status: number;
      /** Where a redirect points. It is not followed, since no provider follows redirects. */
      readonly location: string | null;
      /** The parsed body; undefined when it is not JSON. */
      readonly json: unknown;
      /** Whole milliseconds. */
      readonly durationMs: number;
    }
  | { readonly kind: 'no_response'; readonly reason: string };

/** More than any response of this service has. */
const MAX_BODY_CHARACTERS = 64 * 1024;

/** Reads the start of a body, so that a foreign server cannot fill the memory. */
async function readBodyStart(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true });
    if (text.length > MAX_BODY_CHARACTERS) break;
  }
  return text.slice(0, MAX_BODY_CHARACTERS);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorCodeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? errorCodeOf(error.cause) : '';
}

/** Returns why there was no response, in words that help an operator. */
function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof DeadlineExceeded) {
    return `no response within ${(timeoutMs / 1000).toFixed(1)} s`;
  }
  const code = errorCodeOf(error);
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name is not in DNS';
    case 'ECONNREFUSED':
      return 'the connection was refused';
    default:
      return code === '' ? 'the connection failed' : `the connection failed (${code})`;
  }
}

/** Sends one request, a POST if it has a body, and reads the response. Never throws. */
export async function sendRequest(
  url: string,
  request: { readonly headers?: Readonly<Record<string, string>>; readonly body?: Buffer },
  timeoutMs: number,
): Promise<SendResult> {
  const { headers = {}, body } = request;
  const startedAt = performance.now();
  try {
    const { response, text } = await withDeadline(timeoutMs, async ({ signal }) => {
      const answer = await fetch(url, {
        method: body === undefined ? 'GET' : 'POST',
        headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
        redirect: 'manual',
        signal,
      });
      return { response: answer, text: await readBodyStart(answer) };
    });
    return {
      kind: 'response',
      status: response.status,
      location: response.headers.get('location'),
      json: parseJson(text),
      durationMs: Math.round(performance.now() - startedAt),
    };
  } catch (error) {
    return { kind: 'no_response', reason: reasonOf(error, timeoutMs) };
  }
}
