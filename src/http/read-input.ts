import * as z from 'zod';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';
import type { FieldError } from './errors.ts';
import { findImplausibleInstants } from './instants.ts';
import { parseBody } from './parse-body.ts';
import { findUnstorableText } from './storable-text.ts';

/** The schema of a part of a request that a route does not read. */
const UNREAD = z.undefined();

function fieldErrors(error: z.ZodError | undefined): FieldError[] {
  return (error?.issues ?? []).map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
}

/** Parses the query and the JSON body of a request. Throws 400 with every invalid field, 413 or 415. */
export async function readInput<Q extends z.ZodType, B extends z.ZodType>(
  schemas: { readonly query?: Q; readonly body?: B },
  ctx: HttpContext,
  now: number,
): Promise<{ readonly query: z.output<Q>; readonly body: z.output<B> }> {
  const json = schemas.body === undefined ? undefined : ((await parseBody(ctx)) ?? {});
  const unstorable = [...findUnstorableText(ctx.query), ...findUnstorableText(json)];
  if (unstorable.length > 0) throw new ApiError('invalid_request', { errors: unstorable });
  const query = (schemas.query ?? UNREAD).safeParse(schemas.query === undefined ? undefined : ctx.query);
  const body = (schemas.body ?? UNREAD).safeParse(json);
  const errors = [
    ...fieldErrors(query.error),
    ...fieldErrors(body.error),
    ...(query.success ? findImplausibleInstants(schemas.query ?? UNREAD, query.data, now) : []),
    ...(body.success ? findImplausibleInstants(schemas.body ?? UNREAD, body.data, now) : []),
  ];
  if (errors.length > 0) throw new ApiError('invalid_request', { errors });
  return { query: query.data as z.output<Q>, body: body.data as z.output<B> };
}
