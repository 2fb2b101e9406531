import { ERRORS } from './error-codes.ts';
import type { ErrorCode } from './error-codes.ts';

/** A problem with one field of a request. */
export interface FieldError {
  /** Names and indexes, separated by dots, such as `rows.3.slug`. Empty for the whole body. */
  readonly path: string;
  readonly message: string;
}

export interface ApiErrorOptions {
  /** Sentences for the caller. Never contains a secret, an SQL statement or data of another account. */
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  /** The id that has the external id of the request. */
  readonly existingId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The only error that callers see. Any other error becomes a 500 without details. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string | undefined;
  readonly errors: readonly FieldError[] | undefined;
  readonly existingId: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    const [status, title] = ERRORS[code];
    super(options.detail ?? title, { cause: options.cause });
    this.code = code;
    this.status = status;
    this.title = title;
    this.detail = options.detail;
    this.errors = options.errors;
    this.existingId = options.existingId;
    this.headers = options.headers ?? {};
  }
}

/** Returns the 404 of an unknown id, a malformed id and another account's id, which are indistinguishable. */
export function notFound(): ApiError {
  return new ApiError('not_found');
}

/** Returns an error that says what to do next in the words of `ERRORS`. */
export function withAdvice(code: ErrorCode): ApiError {
  return new ApiError(code, { detail: ERRORS[code][2] });
}

/** Whose limit of mails is reached. */
const MAIL_LIMITS = {
  creator: 'The creator has as many as one may have within an hour.',
  member: 'The member has as many as one may have at a time.',
  account: 'The account has sent as many as it may within an hour.',
} as const;

/** Returns a 429 about mails, with when the next one is possible, in seconds. `whose` says which limit it is. */
export function tooManyEmails(retryAfterSeconds: number, whose: keyof typeof MAIL_LIMITS): ApiError {
  return new ApiError('too_many_emails', {
    detail: `Nothing was sent. ${MAIL_LIMITS[whose]} Wait for \`Retry-After\` seconds, then send the request again.`,
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}

/** Returns a 400 about one field. */
export function invalidField(path: string, message: string): ApiError {
  return new ApiError('invalid_request', { errors: [{ path, message }] });
}

/** Returns a 409 that names the id with the external id of a request. */
export function externalIdTaken(existingId: string, effect = 'Nothing was created.'): ApiError {
  return new ApiError('external_id_taken', {
    detail: `${existingId} has this externalId. ${effect}`,
    existingId,
  });
}

/** Returns `value`. Throws 404 if it is undefined. */
export function foundOrThrow<T>(value: T | undefined): T {
  if (value === undefined) throw notFound();
  return value;
}

/** An operator has to act first. */
const STOPPED_RETRY_AFTER_SECONDS = 600;

/** Returns the error of a call that would pay while payouts are stopped. `call` is a verb, with a capital. */
export function payoutsStopped(call: string): ApiError {
  return new ApiError('payouts_stopped', {
    detail: `Nothing was paid. The database was restored or copied and may have forgotten payouts. ${call} again when the operator has recorded them.`,
    headers: { 'Retry-After': String(STOPPED_RETRY_AFTER_SECONDS) },
  });
}
