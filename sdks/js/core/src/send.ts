import type { Platform } from './platform.ts';
import { ONE_DAY_MS } from './state.ts';

/** A body of the service: an attribution or a problem document. */
export interface AnswerBody {
  readonly attributionId?: string | null;
  readonly affiliateId?: string | null;
  readonly touch?: 'won' | 'existing' | 'unknown' | null;
  readonly code?: string;
  /** A list of `{ path }` from the service. A proxy in front of it may send anything. */
  readonly errors?: unknown;
}

/** The service took the request. */
export const OK = 0;
/** The service refused the request permanently. */
export const REFUSED = 1;
/** The service says that the key or the path is wrong: nothing can be delivered. */
export const MISCONFIGURED = 2;
/** No answer of the service. */
export const FAILED = 3;

export interface Answer {
  /** What the answer means for the request: one of the constants above. */
  readonly meaning: number;
  /** The status, or why there is no answer. */
  readonly status: unknown;
  /** `attributionId` is null if there is no attribution. */
  readonly body: AnswerBody;
  /** By how much the device's clock is behind the service, ms. 0 if that is little or unknown. */
  readonly clockErrorMs: number;
  /** What `Retry-After` says, ms, else 0. */
  readonly afterMs: number;
}

export const REQUEST_TIMEOUT_MS = 10_000;
const CLOCK_TOLERANCE_MS = 60_000;
const BAD_SIGNATURE = ['signature_required', 'invalid_signature'];
/** The codes that make these statuses final. With another one they mean a wrong key or host. */
const FINAL_CODES: Readonly<Record<number, readonly string[]>> = {
  401: BAD_SIGNATURE,
  403: BAD_SIGNATURE,
  404: ['no_attributable_click', 'no_attribution'],
};

function parse(text: string): AnswerBody {
  try {
    const body = Object(JSON.parse(text)) as AnswerBody;
    // Throws if it is too deep to be logged.
    JSON.stringify(body);
    return body;
  } catch {
    return {};
  }
}

/** Returns the delay that `Retry-After` asks for in seconds or as a date, ms. A header that is missing is neither. */
function retryAfter(value: string, now: number): number {
  const ms = /^\d+$/.test(value) ? +value * 1000 : Date.parse(value) - now;
  return Math.min(Math.max(ms || 0, 0), ONE_DAY_MS);
}

/**
 * Returns the clock error, which is 0 if it is little or unknown, if it may be why the service refused a request: the 400 names this
 * field. Otherwise undefined.
 */
export function clockErrorOf(
  { status, body: { errors }, clockErrorMs }: Answer,
  field: string,
): number | undefined {
  const given = [errors as readonly ({ path?: unknown } | null | undefined)[]].flat();
  const isNamed = status === 400 && given.some((error) => error?.path === field);
  return isNamed ? clockErrorMs : undefined;
}

function classify(status: number, { attributionId, code = '' }: AnswerBody): number {
  if (status === 200 && (typeof attributionId === 'string' || attributionId === null)) return OK;
  if ([400, 409, 413, 422].includes(status) || FINAL_CODES[status]?.includes(code)) return REFUSED;
  // Only the service's own answers have a code that is a text. A proxy in front of it answers the same while the service is unavailable.
  return isStrange(status) && typeof code === 'string' && code ? MISCONFIGURED : FAILED;
}

/** Whether a status may mean that the key or the host is wrong. */
export const isStrange = (status: unknown): boolean => (status as number) in FINAL_CODES;

/** Sends one request. Never throws or rejects. */
export async function send(
  platform: Platform,
  url: string,
  apiKey: string,
  body: object,
  controller: AbortController,
): Promise<Answer> {
  const cancelTimeout = platform.after(REQUEST_TIMEOUT_MS, () => controller.abort());
  try {
    const response = await platform.fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      credentials: 'omit',
      redirect: 'error',
      // The request outlives the page, which may lead to a checkout at once.
      keepalive: true,
      signal: controller.signal,
    });
    const given = parse(await response.text());
    const { status, headers } = response;
    const now = platform.now();
    // A missing header is no date.
    const date = Date.parse(headers.get('date') as string);
    const error = date - now;
    return {
      meaning: classify(status, given),
      status,
      body: given,
      clockErrorMs: Math.abs(error) > CLOCK_TOLERANCE_MS ? error : 0,
      afterMs: retryAfter(headers.get('retry-after') as string, date || now),
    };
  } catch (error) {
    return { meaning: FAILED, status: error, body: {}, clockErrorMs: 0, afterMs: 0 };
  } finally {
    cancelTimeout();
  }
}
