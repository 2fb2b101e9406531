import { MAX_RATES_BYTES } from './read-rates-file.ts';

const TIMEOUT_MS = 20_000;

/** Answers of 4xx that another try may change: timed out, too early, too many requests. */
const PASSING = new Set([408, 425, 429]);

/** The rates could not be had. The message names no more of the address than its host. */
export class RatesUnavailable extends Error {
  override readonly name: string = 'RatesUnavailable';
}

/** The address itself is wrong: trying again does not help, an operator has to look at it. */
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
 * Downloads a file of rates, with a deadline over all of it and a limit to its size. Throws `RatesUnavailable` with one
 * sentence that may stand in a workflow's history.
 */
export async function fetchRatesFile(
  url: string,
  { timeoutMs = TIMEOUT_MS, maxBytes = MAX_RATES_BYTES } = {},
): Promise<Buffer> {
  const { host } = new URL(url);
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    if (!response.ok) {
      const { status } = response;
      await response.body?.cancel();
      const isFinal = status >= 400 && status < 500 && !PASSING.has(status);
      throw new (isFinal ? RatesAddressWrong : RatesUnavailable)(`${host} answered ${status}.`);
    }
    return await readLimited(response, host, maxBytes);
  } catch (error) {
    if (error instanceof RatesUnavailable) throw error;
    const { name } = error as { name?: unknown };
    throw new RatesUnavailable(
      name === 'TimeoutError'
        ? `${host} did not send the rates within ${timeoutMs / 1000} s.`
        : `${host} can't be reached (${reasonOf(error)}).`,
      { cause: error },
    );
  }
}
