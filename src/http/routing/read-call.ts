import type * as z from 'zod';
import { isId } from '../../domain/ids.ts';
import type { Id, IdKind } from '../../domain/ids.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { notFound } from '../errors.ts';
import { readInput } from '../read-input.ts';

/** The parameters of a path, as received. */
export type Params = Readonly<Record<string, string>>;
export type Ids = Readonly<Record<string, IdKind>>;

/** What a route reads from a request. */
export interface Input<I extends Ids, Q extends z.ZodType, B extends z.ZodType> {
  /** Path parameters that are ids, and their kinds. `appId` of an app's route is implied. */
  readonly ids?: I;
  readonly query?: Q;
  /** The JSON body. A missing body counts as `{}`. */
  readonly body?: B;
}

/** What a handler of any route receives. Everything in it has been checked. */
export interface Call {
  readonly ctx: HttpContext;
  readonly deps: HttpDeps;
  /** When the request arrived, epoch ms. */
  readonly now: number;
  /** Path parameters as received. */
  readonly params: Params;
}

/** A call with the input that its route declares. */
export interface ParsedCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType> extends Call {
  /** The path parameters that `ids` declares. */
  readonly ids: { readonly [K in keyof I]: Id<I[K]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
}

/** Reads the input of a call: 400, 413 or 415, then 404 for a malformed id. `bodyLimitBytes` is that of the caller. */
export async function readCall<I extends Ids, Q extends z.ZodType, B extends z.ZodType>(
  input: Input<I, Q, B>,
  { ctx, deps, params }: Pick<Call, 'ctx' | 'deps' | 'params'>,
  bodyLimitBytes: number,
): Promise<ParsedCall<I, Q, B>> {
  const now = deps.now();
  const { query, body } = await readInput(input, ctx, deps, { now, bodyLimitBytes });
  return { ctx, deps, now, params, ids: readIds(input.ids, params), query, body };
}

/** Returns the ids in the path. Throws 404 if one is malformed, as for an unknown id. */
function readIds<I extends Ids>(kinds: I | undefined, params: Params): { readonly [K in keyof I]: Id<I[K]> } {
  const ids = Object.entries(kinds ?? {}).map(([name, kind]) => [name, readId(kind, params[name])] as const);
  // Object.fromEntries loses which name has which kind.
  return Object.fromEntries(ids) as { readonly [K in keyof I]: Id<I[K]> };
}

/** Returns an id in the path. Throws 404 if it is malformed. */
export function readId<K extends IdKind>(kind: K, text = ''): Id<K> {
  if (!isId(kind, text)) throw notFound();
  return text;
}
