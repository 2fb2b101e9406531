import type { HttpContext } from './context.ts';
import type { ApiError } from './errors.ts';

/** A whole answer as text: what is sent, and what an idempotency key keeps. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A JSON answer. */
export function jsonReply(status: number, value: unknown): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: JSON.stringify(value),
  };
}

/** An error as a problem document (RFC 9457). */
export function problemReply(error: ApiError, requestId: string): Reply {
  const { code, status, title, detail, errors, headers } = error;
  return {
    status,
    headers: { ...headers, 'Content-Type': 'application/problem+json' },
    body: JSON.stringify({
      type: `urn:tributary:error:${code}`,
      title,
      status,
      ...(detail === undefined ? {} : { detail }),
      code,
      requestId,
      ...(errors === undefined ? {} : { errors }),
    }),
  };
}

/** Puts an answer on the context. */
export function sendReply(ctx: HttpContext, { status, headers, body }: Reply): void {
  ctx.set(headers);
  ctx.status = status;
  ctx.body = body;
}
