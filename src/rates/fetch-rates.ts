import { withDeadline } from '../lib/deadline.ts';
import { MAX_RATES_BYTES } from './read-rates-file.ts';

const TIMEOUT_MS = 20_000;

/** 4xx statuses that a later attempt may not get: timeout, too early, too many requests. */
const RETRYABLE = new Set([408, 425, 429]);

/** The download failed. The message names only the host of the URL. */
export class RatesUnavailable extends Error {
  override readonly name: string = 'RatesUnavailable';
}

/** The URL is wrong, so a retry cannot help and an operator has to change it. */
export class RatesAddressWrong extends RatesUnavailable {
  override readonly name = 'RatesAddressWrong';
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (typeof code === 'string') return code;
  return error instanceof Error ? error.message : String(error);
}

async function readLimited(response: Response, host: string, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    parts.push(part as Uint8Array);
    length += (part as Uint8Array).length;
    if (length > maxBytes) throw new RatesUnavailable(`${host} sent more than ${maxBytes} bytes.`);
  }
  return Buffer.concat(parts);
}

/**
 * Downloads a rates file within a time limit and a size limit. Throws `RatesUnavailable`, whose message is one sentence
 * that is safe to store in a workflow's history.
 */
export async function fetchRatesFile(
  url: string,
  { timeoutMs = TIMEOUT_MS, maxBytes = MAX_RATES_BYTES } = {},
): Promise<Buffer> {
  const { host } = new URL(url);
  try {
    return await withDeadline(timeoutMs, async ({ signal }) => {
      const response = await fetch(url, { signal });
      if (!response.ok) {
        const { status } = response;
        await response.body?.cancel();
        const isFinal = status >= 400 && status < 500 && !RETRYABLE.has(status);
        throw new (isFinal ? RatesAddressWrong : RatesUnavailable)(`${host} responded with ${status}.`);
      }
      return await readLimited(response, host, maxBytes);
    });
  } catch (error) {
    if (error instanceof RatesUnavailable) throw error;
    const { name } = error as { name?: unknown };
    throw new RatesUnavailable(
      name === 'TimeoutError'
        ? `${host} did not send the rates within ${timeoutMs / 1000} s.`
        : `${host} cannot be reached (${reasonOf(error)}).`,
      { cause: error },
    );
  }
}
