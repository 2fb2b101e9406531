import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { addressBlock } from '../domain/addresses.ts';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/** Calls per minute; 0 is no limit. */
export interface RateLimitSettings {
  /** Of one account key. */
  readonly account: number;
  /** Of one device. */
  readonly sdk: number;
  /** Of one app and requester, clicks and redirects together. */
  readonly clicks: number;
}

export type RateLimitName = keyof RateLimitSettings;

export const NO_RATE_LIMITS: RateLimitSettings = { account: 0, sdk: 0, clicks: 0 };

const WINDOW_SECONDS = 60;

/**
 * Counters of one limit at most. Callers are spread over this many by a hash, so that a flood of made-up devices or
 * addresses can't fill the memory; two real callers share a counter once in a while, far below the limit.
 */
const COUNTERS = 1 << 17;

function counterOf(caller: string): string {
  return String(createHash('sha256').update(caller).digest().readUInt32BE(0) % COUNTERS);
}

/**
 * Who counts as one for clicks of an app: the hash that a caller of `POST /clicks` sends, else the requester's address.
 * Anybody may send any text as a hash, an address too, so a hash never counts as an address.
 */
export function clickCaller(appId: string, address: string, ipHash: string | null = null): string {
  return ipHash === null ? `${appId} address ${addressBlock(address) ?? address}` : `${appId} hash ${ipHash}`;
}

/** Where a caller stands. */
export interface RateLimitState {
  readonly isAllowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Until the window ends and the count starts again. */
  readonly resetSeconds: number;
}

/** Counts calls in this process, in windows of one minute. Answers null where there is no limit. */
export interface RateLimits {
  readonly count: (name: RateLimitName, caller: string) => Promise<RateLimitState | null>;
}

/** The counters of one process. */
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
 * Counts a call and says on the answer where the caller stands (`RateLimit-Policy`, `RateLimit`). Over the limit it
 * is a 429 with `Retry-After`.
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
    detail: `At most ${limit} calls in ${WINDOW_SECONDS} seconds.`,
    headers: { 'Retry-After': String(Math.max(1, resetSeconds)) },
  });
}
