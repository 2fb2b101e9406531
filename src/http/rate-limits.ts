import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { addressBlock } from '../domain/addresses.ts';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/** Calls per minute. 0 means no limit. */
export interface RateLimitSettings {
  /** Per account key. */
  readonly account: number;
  /** Per device of an app. */
  readonly sdk: number;
  /** Per app and client, clicks and redirects together. */
  readonly clicks: number;
}

export type RateLimitName = keyof RateLimitSettings;

export const NO_RATE_LIMITS: RateLimitSettings = { account: 0, sdk: 0, clicks: 0 };

const WINDOW_SECONDS = 60;

/**
 * The most counters per limit. Callers are distributed over them by a hash, so that a flood of invented devices or
 * addresses can't exhaust memory. Two real callers rarely share a counter, and then stay far below the limit.
 */
const COUNTERS = 1 << 17;

function counterOf(caller: string): string {
  return String(createHash('sha256').update(caller).digest().readUInt32BE(0) % COUNTERS);
}

/**
 * Returns the text that identifies a caller for the click limit of an app: the hash that `POST /clicks` was sent, or the
 * client's address. A hash may be any text, also an address, so the two never share a counter.
 */
export function clickCaller(appId: string, address: string, ipHash: string | null = null): string {
  return ipHash === null ? `${appId} address ${addressBlock(address) ?? address}` : `${appId} hash ${ipHash}`;
}

/** What remains of a limit for a caller. */
export interface RateLimitState {
  readonly isAllowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends. */
  readonly resetSeconds: number;
}

/** Counts calls in this process, in windows of one minute. Returns null if the limit is off. */
export interface RateLimits {
  readonly count: (name: RateLimitName, caller: string) => Promise<RateLimitState | null>;
}

/** Creates the counters of a process. */
export function createRateLimits(settings: RateLimitSettings): RateLimits {
  const limiters = new Map<RateLimitName, RateLimiterMemory>();
  for (const name of ['account', 'sdk', 'clicks'] as const) {
    const points = settings[name];
    if (points > 0) limiters.set(name, new RateLimiterMemory({ points, duration: WINDOW_SECONDS }));
  }
  return {
    count: async (name, caller) => {
      const limiter = limiters.get(name);
      if (limiter === undefined) return null;
      const outcome = await limiter.consume(counterOf(caller)).catch((refusal: unknown) => refusal);
      if (!(outcome instanceof RateLimiterRes)) throw outcome;
      return {
        isAllowed: outcome.consumedPoints <= limiter.points,
        limit: limiter.points,
        remaining: Math.max(0, outcome.remainingPoints),
        resetSeconds: Math.ceil(outcome.msBeforeNext / 1000),
      };
    },
  };
}

/**
 * Counts a call and sets `RateLimit-Policy` and `RateLimit` of the response. Throws 429 with `Retry-After` over the
 * limit.
 */
export async function limitRate(
  ctx: HttpContext,
  limits: RateLimits,
  name: RateLimitName,
  caller: string,
): Promise<void> {
  const state = await limits.count(name, caller);
  if (state === null) return;
  const { isAllowed, limit, remaining, resetSeconds } = state;
  ctx.set('RateLimit-Policy', `"${name}";q=${limit};w=${WINDOW_SECONDS}`);
  ctx.set('RateLimit', `"${name}";r=${remaining};t=${resetSeconds}`);
  if (isAllowed) return;
  throw new ApiError('rate_limited', {
    detail: `The limit is ${limit} calls in ${WINDOW_SECONDS} seconds. Wait for \`Retry-After\` seconds.`,
    headers: { 'Retry-After': String(Math.max(1, resetSeconds)) },
  });
}
