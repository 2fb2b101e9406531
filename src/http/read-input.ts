import * as z from 'zod';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError } from './errors.ts';
import { fieldErrors, findUnknownParameters, MAX_ERRORS, PARSE_OPTIONS } from './field-errors.ts';
import { findImplausibleInstants } from './instants.ts';
import { parseBody } from './parse-body.ts';
import { readQuery } from './query.ts';
import { findUnstorableText } from './storable-text.ts';

/** The schema of a part of a request that a route does not read. */
const UNREAD = z.undefined();

/** Paths whose unknown query parameters are refused. Others are public, and visitors come with any parameters. */
const OWN_PATH = /^\/(apps|accounts|sessions?|operator)(\/|$)/;

/** Parses the query and the JSON body of a request. Throws 400 with every invalid field, 413, 415 or 503. */
export async function readInput<Q extends z.ZodType, B extends z.ZodType>(
  schemas: { readonly query?: Q; readonly body?: B },
  ctx: HttpContext,
  deps: Pick<HttpDeps, 'bodyBudget'>,
  { now, bodyLimitBytes }: { readonly now: number; readonly bodyLimitBytes: number },
): Promise<{ readonly query: z.output<Q>; readonly body: z.output<B> }> {
  const parsed = schemas.body === undefined ? undefined : await parseBody(ctx, deps, bodyLimitBytes);
  const sentQuery = schemas.query === undefined && !OWN_PATH.test(ctx.path) ? {} : readQuery(ctx);
  const unstorable = [
    ...findUnstorableText(sentQuery, ctx.querystring),
    ...(parsed === undefined ? [] : findUnstorableText(parsed.value, parsed.text)),
  ];
  if (unstorable.length > 0) throw new ApiError('invalid_request', { errors: unstorable });
  const query = (schemas.query ?? UNREAD).safeParse(
    schemas.query === undefined ? undefined : sentQuery,
    PARSE_OPTIONS,
  );
  const body = (schemas.body ?? UNREAD).safeParse(
    schemas.body === undefined ? undefined : (parsed?.value ?? {}),
    PARSE_OPTIONS,
  );
  const errors = [
    ...(OWN_PATH.test(ctx.path) ? findUnknownParameters(schemas.query, sentQuery) : []),
    ...fieldErrors(query.error),
    ...fieldErrors(body.error),
    ...(query.success ? findImplausibleInstants(schemas.query ?? UNREAD, query.data, now) : []),
    ...(body.success ? findImplausibleInstants(schemas.body ?? UNREAD, body.data, now) : []),
  ];
  if (errors.length > 0) throw new ApiError('invalid_request', { errors: errors.slice(0, MAX_ERRORS) });
  return { query: query.data as z.output<Q>, body: body.data as z.output<B> };
}
