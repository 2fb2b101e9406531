import type * as z from 'zod';
import type { AccountId } from '../../domain/ids.ts';
import type { HttpContext } from '../context.ts';
import { createIdGenerator } from '../id-generator.ts';
import type { IdGenerator } from '../id-generator.ts';
import { respondOnce } from '../idempotency.ts';
import { CSV_TYPE, csvOfList } from '../list-csv.ts';
import type { PageOfRows } from '../list-csv.ts';
import { jsonReply, sendReply } from '../reply.ts';
import type { RawReply } from '../reply.ts';
import type { Ids, ParsedCall } from './read-call.ts';
import type { Declaration, Handling, Response } from './declaration.ts';

/**
 * Runs the handler of a route and sends what it returns: a raw reply, JSON, or CSV if it is a list and the caller prefers that.
 * With an `account`, a call with an `Idempotency-Key` of that account runs once.
 */
export async function respond<
  Extra extends object,
  R extends Response,
  I extends Ids,
  Q extends z.ZodType,
  B extends z.ZodType,
>(
  { path, response, handler }: Pick<Declaration, 'path'> & Handling<Extra, R, I, Q, B>,
  call: ParsedCall<I, Q, B> & Extra,
  account: AccountId | undefined,
): Promise<void> {
  const { ctx, deps, body, now } = call;
  const { status } = response;
  const handle = (idGenerator: IdGenerator, query = call.query) => handler({ ...call, query, idGenerator });
  if ('contentType' in response) {
    const reply = (await handle(createIdGenerator(now))) as RawReply;
    sendReply(ctx, { status, ...reply });
  } else if (response.asCsv === true && prefersCsv(ctx)) {
    const query = call.query as Readonly<Record<string, unknown>>;
    const name = path.split('/').at(-1) ?? 'list';
    const reply = await csvOfList(
      response.schema,
      name,
      query['cursor'] as string | undefined,
      async (limit, cursor) => {
        const page = await handle(createIdGenerator(now), { ...query, limit, cursor } as z.output<Q>);
        return page as PageOfRows;
      },
    );
    sendReply(ctx, { status, ...reply });
  } else if (account === undefined) {
    sendReply(ctx, jsonReply(status, await handle(createIdGenerator(now))));
  } else {
    const reply = async (idGenerator: IdGenerator) => jsonReply(status, await handle(idGenerator));
    sendReply(ctx, await respondOnce(ctx, deps, account, body, reply));
  }
}

/** Whether the caller prefers a list as CSV. */
export function prefersCsv(ctx: HttpContext): boolean {
  return ctx.accepts('application/json', CSV_TYPE) === CSV_TYPE;
}
