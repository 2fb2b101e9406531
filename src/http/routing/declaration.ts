import type * as z from 'zod';
import type { ErrorCode } from '../error-codes.ts';
import type { IdGenerator } from '../id-generator.ts';
import type { RawReply } from '../reply.ts';
import type { Ids, Input, ParsedCall } from './read-call.ts';

/** The part of a declaration that does not depend on what the route reads and returns. */
export interface Declaration {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** The operation's name in the OpenAPI document, which generated clients use. Never changes. */
  readonly operationId: string;
  /** One line for the OpenAPI document. */
  readonly summary: string;
  /** Further details for the OpenAPI document, in CommonMark. */
  readonly description?: string;
  /** Errors that the handler throws, beyond those that follow from the rest of the declaration. With `unavailable`, calls of an open route take a slot. */
  readonly errors?: readonly ErrorCode[];
  /** The response waits for the next multiple of this time, ms, so that its delay does not show what was found. Absent: no wait. */
  readonly responseStepMs?: number;
  /** Whether a response is made of a whole payout, so that only a few are made and sent at one time. Then `errors` has `unavailable`. */
  readonly makesFile?: boolean;
}

/** A response in JSON. */
interface JsonResponse {
  readonly status: 200 | 201 | 202;
  readonly schema: z.ZodType;
  /** For a list: whether `Accept: text/csv` gets its rows as CSV. */
  readonly asCsv?: boolean;
  /** Headers that the handler sets, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response that is not JSON of one schema: a file, a page or a redirect. Its handler returns headers and body. */
interface RawResponse {
  readonly status: 200 | 302;
  readonly contentType: string;
  /** The schema of the body, if it is more specific than the content type. */
  readonly schema?: z.ZodType;
  /** Headers of the response, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type Response = JsonResponse | RawResponse;

/** What the handler of a response returns. */
export type Result<R extends Response> = R extends RawResponse
  ? RawReply
  : R extends { readonly schema: infer S extends z.ZodType }
    ? z.input<S>
    : never;

/** What a handler receives. Everything in it has been checked. */
export type HandlerCall<Extra, I extends Ids, Q extends z.ZodType, B extends z.ZodType> = ParsedCall<
  I,
  Q,
  B
> &
  Extra & {
    /**
     * Creates the ids and keys of the call. Where the route stores its response, a call that runs again with its idempotency key
     * creates those of its first run.
     */
    readonly idGenerator: IdGenerator;
  };

/** What a route reads, what it returns, and how. */
export interface Handling<
  Extra,
  R extends Response,
  I extends Ids,
  Q extends z.ZodType,
  B extends z.ZodType,
> extends Input<I, Q, B> {
  readonly response: R;
  readonly handler: (call: HandlerCall<Extra, I, Q, B>) => Promise<Result<R>>;
}
