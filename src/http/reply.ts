import type { HttpContext } from './context.ts';
import type { ApiError } from './errors.ts';

/** A complete response. */
export interface Reply<Body extends string | Buffer = string | Buffer> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** Headers and body of a response whose route declares the status. */
export type RawReply = Pick<Reply, 'headers' | 'body'>;

/** A response of text, which can be stored for an idempotency key. */
export type TextReply = Reply<string>;

/** Returns a JSON response. */
export function jsonReply(status: number, value: unknown): TextReply {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: JSON.stringify(value),
  };
}

/** Returns an error as a problem document (RFC 9457). */
export function problemReply(error: ApiError, requestId: string): TextReply {
  const { code, status, title, detail, errors, existingId, headers } = error;
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
      ...(existingId === undefined ? {} : { existingId }),
    }),
  };
}

/** Sets the response of a request. */
export function sendReply(ctx: HttpContext, { status, headers, body }: Reply): void {
  ctx.set(headers);
  ctx.status = status;
  ctx.body = body;
}
