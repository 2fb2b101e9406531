import { createHash } from 'node:crypto';
import { addressSite } from '../domain/addresses.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import type { KnownCallers } from './known-callers.ts';
import { refuseBeyondLimit } from './rate-limits.ts';

type Deps = Pick<HttpDeps, 'rateLimits' | 'knownCredentials' | 'now'>;

/**
 * Counts a call as failed against its address (IPv6: its /56), before anything is looked up for it. Throws 429 over the limit.
 * Returns a function that takes the count back once, when the call turns out not to have failed.
 */
export async function countAsFailed(
  ctx: HttpContext,
  { rateLimits }: Pick<HttpDeps, 'rateLimits'>,
  name: 'failures' | 'refusals' = 'failures',
): Promise<() => Promise<void>> {
  const site = addressSite(ctx.ip) ?? ctx.ip;
  await refuseBeyondLimit(rateLimits, name, site);
  let isCounted = true;
  return async () => {
    if (isCounted) await rateLimits.takeBack(name, site);
    isCounted = false;
  };
}

/** Returns what identifies a key or a token in memory, which is not its text. */
function nameOf(credential: string): string {
  return createHash('sha256').update(credential).digest('base64');
}

/** Remembers a key or a token as accepted. */
export function rememberCredential(known: KnownCallers, credential: string, now: number): void {
  known.add(nameOf(credential), now);
}

/**
 * Looks up whose a key or a token is. Undefined if nobody's, which counts against the address; throws 429 over that limit. One
 * that this process has accepted within a day is always looked up: the wrong keys of a neighbour at the same address do not
 * lock it out.
 */
export async function findByCredential<T>(
  ctx: HttpContext,
  deps: Deps,
  credential: string,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const { knownCredentials } = deps;
  const name = nameOf(credential);
  if (knownCredentials.has(name, deps.now())) {
    const found = await find();
    if (found === undefined) knownCredentials.forget(name);
    else knownCredentials.add(name, deps.now());
    return found;
  }
  const takeBack = await countAsFailed(ctx, deps);
  try {
    const found = await find();
    if (found === undefined) return undefined;
    knownCredentials.add(name, deps.now());
    await takeBack();
    return found;
  } catch (error) {
    // The database was not available: that is not the fault of the call.
    await takeBack();
    throw error;
  }
}
