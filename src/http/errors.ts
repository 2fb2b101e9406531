/** Every error that this API answers: its stable code, the status that goes with it, and what it is in a few words. */
const ERRORS = {
  invalid_request: [400, 'The request is not valid'],
  invalid_cursor: [400, 'The cursor is not valid'],
  provider_not_supported_yet: [400, 'The provider is not supported yet'],
  unauthorized: [401, 'A valid key is needed'],
  forbidden: [403, 'The key lacks a permission'],
  not_found: [404, 'Not found'],
  no_attributable_click: [404, 'No attributable click'],
  no_attribution: [404, 'The device has no attribution'],
  method_not_allowed: [405, 'Method not allowed'],
  slug_taken: [409, 'The slug is taken'],
  subdomain_taken: [409, 'The link subdomain is taken'],
  ambiguous_match: [409, 'Several affiliates match'],
  total_changed: [409, 'The total has changed'],
  idempotency_key_reused: [409, 'The idempotency key was used for another request'],
  payload_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body is not JSON'],
  rate_limited: [429, 'Too many requests'],
  internal_error: [500, 'Internal error'],
  unavailable: [503, 'Temporarily unavailable'],
  not_ready: [503, 'Not ready'],
  payout_not_settled: [503, 'The payout was not made in time'],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof ERRORS;

/** One thing that is wrong with a request. */
export interface FieldError {
  /** Where: names and indexes with dots between, `rows.3.slug`. Empty for the whole body. */
  readonly path: string;
  readonly message: string;
}

export interface ApiErrorOptions {
  /** A sentence for the caller. Never a secret, a query or anything of another tenant. */
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The only error that is meant for a caller. Whatever else is thrown is answered as an internal error. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string | undefined;
  readonly errors: readonly FieldError[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    const [status, title] = ERRORS[code];
    super(options.detail ?? title, { cause: options.cause });
    this.code = code;
    this.status = status;
    this.title = title;
    this.detail = options.detail;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
  }
}

/** The one 404 of everything under an app: an unknown id, a malformed one and another account's id read alike. */
export function notFound(): ApiError {
  return new ApiError('not_found');
}

/** A 400 about one field. */
export function invalidField(path: string, message: string): ApiError {
  return new ApiError('invalid_request', { errors: [{ path, message }] });
}

/** `value`, or the 404 when there is none. */
export function foundOrThrow<T>(value: T | undefined): T {
  if (value === undefined) throw notFound();
  return value;
}
