import { hash } from 'node:crypto';
import { addressSite } from '../domain/addresses.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import type { KnownCallers } from './known-callers.ts';
import { overLimit, refuseBeyondLimit } from './rate-limits.ts';

type Deps = Pick<HttpDeps, 'rateLimits' | 'knownCredentials' | 'now'>;
type LinkDeps = Pick<HttpDeps, 'rateLimits' | 'knownLinks' | 'now'>;

/**
 * Counts a call as failed against its address (IPv6: its /56), before anything is looked up for it. Throws 429 over the limit.
 * Returns a function that takes the count back once, when the call turns out not to have failed.
 */
export function countAsFailed(
  ctx: HttpContext,
  { rateLimits }: Pick<HttpDeps, 'rateLimits'>,
  name: 'failures' | 'refusals' = 'failures',
): () => void {
  const site = addressSite(ctx.ip) ?? ctx.ip;
  refuseBeyondLimit(rateLimits, name, site);
  let isCounted = true;
  return () => {
    if (isCounted) rateLimits.uncount(name, site);
    isCounted = false;
  };
}

/** Returns what identifies a key or a token in memory, which is not its text. */
function nameOf(credential: string): string {
  return hash('sha256', credential, 'base64');
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
  if (knownCredentials.has(name, deps.now()) || (await isAcceptedMeanwhile(knownCredentials, name))) {
    const found = await find();
    if (found === undefined) knownCredentials.forget(name);
    else knownCredentials.add(name, deps.now());
    return found;
  }
  const uncount = countAsFailed(ctx, deps);
  const look = find();
  const { lookUps } = knownCredentials;
  if (!lookUps.has(name)) lookUps.set(name, look);
  try {
    const found = await look;
    if (found === undefined) return undefined;
    knownCredentials.add(name, deps.now());
    uncount();
    return found;
  } catch (error) {
    // The database was not available: that is not the fault of the call.
    uncount();
    throw error;
  } finally {
    if (lookUps.get(name) === look) lookUps.delete(name);
  }
}

/**
 * Waits for the first look-up of a credential, if one is in progress, and returns whether it found somebody: calls with a valid key
 * that arrive together after a start do not count against their address. Throws what the look-up throws.
 */
async function isAcceptedMeanwhile(known: KnownCallers, name: string): Promise<boolean> {
  return (await known.lookUps.get(name)) !== undefined;
}

/** How many links that this process does not know are looked up for an address, as a multiple of its limit of failed calls. */
const LINK_LOOKUPS = 10;

/**
 * Looks up a link. Undefined if there is none, which counts against the address (IPv6: its /56), apart from calls that failed for
 * other reasons; throws 429 over that limit. A link is found over the limit too, so that visitors who share an address with
 * somebody who tries out links are redirected: one that this process has found within a day always, another one until ten
 * times the limit.
 */
export async function findCountingFailures<T>(
  ctx: HttpContext,
  { rateLimits, knownLinks, now }: LinkDeps,
  link: string,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  if (knownLinks.has(link, now())) {
    const found = await find();
    if (found !== undefined) {
      knownLinks.add(link, now());
      return found;
    }
    knownLinks.forget(link);
  }
  const caller = `links ${addressSite(ctx.ip) ?? ctx.ip}`;
  const state = rateLimits.count('failures', caller);
  if (state !== null && state.count > LINK_LOOKUPS * state.limit) throw overLimit(state);
  let isFailed = false;
  try {
    const found = await find();
    isFailed = found === undefined;
    if (found !== undefined) knownLinks.add(link, now());
    else if (state?.isAllowed === false) throw overLimit(state);
    return found;
  } finally {
    // Otherwise the link was found, or the database was not available: that is not the fault of the call.
    if (!isFailed) rateLimits.uncount('failures', caller);
  }
}
