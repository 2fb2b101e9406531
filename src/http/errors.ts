/**
 * Every error that this API answers: its stable code, the status that goes with it, what it is in a few words, and what
 * the caller does next. `docs/errors.md` and the description of the API are made of this table.
 */
export const ERRORS = {
  invalid_request: [400, 'The request is not valid', 'Mend what `errors` names, then send it again.'],
  invalid_cursor: [
    400,
    'The cursor is not valid',
    'Pass `nextCursor` of the same list with the same filters, or start again without a cursor.',
  ],
  unauthorized: [
    401,
    'A valid key is needed',
    'Send `Authorization: Bearer KEY` with a key of the right kind. A webhook: compare the secret here and at the provider.',
  ],
  forbidden: [
    403,
    'The key lacks a permission',
    'Use a key with the permission that `detail` names; the operator makes one with `admin keys create --permissions`.',
  ],
  not_found: [404, 'Not found', 'Check path and ids: nothing of that name belongs to the account.'],
  no_attributable_click: [
    404,
    'No attributable click',
    'Nothing to mend: nobody brought this install, or its click is too old or belongs to another device.',
  ],
  no_attribution: [
    404,
    'The device has no attribution',
    'Nothing to mend: the user is remembered and bound when the install of the device arrives.',
  ],
  method_not_allowed: [405, 'Method not allowed', 'Use one of the methods in `Allow`.'],
  request_timeout: [408, 'The request took too long', 'Send the whole request at once.'],
  slug_taken: [
    409,
    'The slug is taken',
    'Choose another slug. A slug is unique in its app without regard to case.',
  ],
  subdomain_taken: [
    409,
    'The link subdomain is taken',
    'Choose another one, or leave it out to have one made up.',
  ],
  ambiguous_match: [
    409,
    'Several affiliates match',
    'Nothing to mend: clicks of several affiliates came from this address. Pass a claim token or a code.',
  ],
  total_changed: [409, 'The total has changed', 'Nothing was paid. Look at the preview and export again.'],
  idempotency_key_reused: [
    409,
    'The idempotency key was used for another request',
    'Make a new key for each new request; repeat a key only with the same method, path and body.',
  ],
  idempotency_key_in_use: [
    409,
    'A request with this idempotency key is under way',
    'Wait for `Retry-After` seconds and send the same request again: it answers what the first one came to.',
  ],
  payload_too_large: [413, 'The body is too large', 'Send less than 1 MiB; split a bulk call.'],
  unsupported_media_type: [415, 'The body is not JSON', 'Send `Content-Type: application/json`.'],
  headers_too_large: [431, 'The headers are too large', 'Address and headers together may have 16 KiB.'],
  rate_limited: [429, 'Too many requests', 'Wait for `Retry-After` seconds.'],
  internal_error: [
    500,
    'Internal error',
    'A fault of the service: tell its operator the `requestId`, which is in the log.',
  ],
  unavailable: [503, 'Temporarily unavailable', 'Send it again after `Retry-After` seconds.'],
  not_ready: [503, 'Not ready', 'Wait: `detail` says what is missing.'],
  payout_not_settled: [
    503,
    'The payout was not made in time',
    'Nothing was paid and nothing will be for this call: send it again.',
  ],
} as const satisfies Record<string, readonly [status: number, title: string, advice: string]>;

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
