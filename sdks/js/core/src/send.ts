import type { Platform } from './platform.ts';
import { ONE_DAY_MS } from './state.ts';

/** A body of the service: an attribution or a problem document. */
export interface AnswerBody {
  readonly attributionId?: string | null;
  readonly affiliateId?: string | null;
  readonly touch?: 'won' | 'existing' | 'unknown' | null;
  readonly code?: string;
  readonly errors?: readonly { readonly path: string }[];
}

/** What an answer means for the request. */
export type Answer =
  /** The service answered; `body.attributionId` is null if there is no attribution. */
  | { readonly kind: 'ok'; readonly body: AnswerBody }
  /** The service refused the request for good. `clockErrorMs` is set if the device's clock may be the cause. */
  | { readonly kind: 'refused'; readonly body: AnswerBody; readonly clockErrorMs: number }
  /** The key or the host is wrong: nothing can be delivered. */
  | { readonly kind: 'misconfigured'; readonly status: number }
  /** No answer of the service. `afterMs` is what `Retry-After` says, else 0. */
  | { readonly kind: 'failed'; readonly reason: string; readonly afterMs: number };

export const REQUEST_TIMEOUT_MS = 10_000;
const CLOCK_TOLERANCE_MS = 60_000;
const UNATTRIBUTED = ['no_attributable_click', 'no_attribution'];
const BAD_SIGNATURE = ['signature_required', 'invalid_signature'];

function parse(text: string): AnswerBody {
  try {
    return Object(JSON.parse(text)) as AnswerBody;
  } catch {
    return {};
  }
}

/** Returns the delay that `Retry-After` asks for in seconds or as a date, ms. */
function retryAfter(value: string | null, now: number): number {
  if (value === null) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Math.min(Math.max(ms || 0, 0), ONE_DAY_MS);
}

/** Returns by how much the device's clock is behind the service, ms, or 0 if that is within the tolerance or unknown. */
function clockError(date: string | null, now: number): number {
  const error = Date.parse(date ?? '') - now;
  return Math.abs(error) > CLOCK_TOLERANCE_MS ? error : 0;
}

function classify(status: number, headers: Headers, body: AnswerBody, now: number): Answer {
  const { attributionId, code = '' } = body;
  if (status === 200 && (typeof attributionId === 'string' || attributionId === null))
    return { kind: 'ok', body };
  if (
    [400, 409, 413, 422].includes(status) ||
    (status === 404 && UNATTRIBUTED.includes(code)) ||
    ([401, 403].includes(status) && BAD_SIGNATURE.includes(code))
  )
    return { kind: 'refused', body, clockErrorMs: status === 400 ? clockError(headers.get('date'), now) : 0 };
  if ([401, 403, 404].includes(status)) return { kind: 'misconfigured', status };
  return { kind: 'failed', reason: `status ${status}`, afterMs: retryAfter(headers.get('retry-after'), now) };
}

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
      signal: controller.signal,
    });
    const text = await response.text();
    return classify(response.status, response.headers, parse(text), platform.now());
  } catch (error) {
    return { kind: 'failed', reason: String(error), afterMs: 0 };
  } finally {
    cancelTimeout();
  }
}
