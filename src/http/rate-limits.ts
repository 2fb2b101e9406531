import { createHmac, randomBytes } from 'node:crypto';
import { addressBlock } from '../domain/addresses.ts';
import type { HttpContext } from './context.ts';
import { ApiError } from './errors.ts';

/** Calls per minute. 0 means no limit. */
export interface RateLimitSettings {
  /** Per client address, over all routes that need no account key; see `limitsAddress`. */
  readonly address: number;
  /** Per account key. */
  readonly account: number;
  /** Per device of an app. */
  readonly sdk: number;
  /** Per app and client, clicks and redirects together. */
  readonly clicks: number;
  /** Per app and client address, user ids bound to devices. */
  readonly identify: number;
  /** Per app, provider and client address, refused webhooks; those of all unknown apps together per address (IPv6: its /56). */
  readonly refusals: number;
  /** Per client address, attempts to sign in to the console. */
  readonly signIn: number;
  /** Per account, reports of payment services that are read. */
  readonly reports: number;
  /** Per client address (IPv6: its /56), calls without a valid key or session. */
  readonly failures: number;
}

export type RateLimitName = keyof RateLimitSettings;

export const NO_RATE_LIMITS: RateLimitSettings = {
  address: 0,
  account: 0,
  sdk: 0,
  clicks: 0,
  identify: 0,
  refusals: 0,
  signIn: 0,
  reports: 0,
  failures: 0,
};

const WINDOW_SECONDS = 60;
const WINDOW_MS = WINDOW_SECONDS * 1_000;

/**
 * The most counters per limit. Callers are distributed over them by a hash, so that a flood of invented devices or
 * addresses can't exhaust memory. Two real callers rarely share a counter, and then stay far below the limit. The hash has
 * a random key, so that nobody can search for a device or an `ipHash` that shares the counter of a certain visitor.
 */
const COUNTERS = 1 << 17;
const KEY_BYTES = 32;

function counterOf(key: Buffer, caller: string, counters: number): number {
  return createHmac('sha256', key).update(caller).digest().readUInt32BE(0) % counters;
}

/** Returns the text that identifies an address for a limit: itself, or the /64 of an IPv6 address. */
export function addressCaller(address: string): string {
  return addressBlock(address) ?? address;
}

/**
 * Returns the text that identifies a caller for the click limit of an app: the hash that `POST /clicks` was sent, or the
 * client's address. A hash may be any text, also an address, so the two never share a counter.
 */
export function clickCaller(appId: string, address: string, ipHash: string | null = null): string {
  return ipHash === null ? `${appId} address ${addressCaller(address)}` : `${appId} hash ${ipHash}`;
}

/** What remains of a limit for a caller. */
export interface RateLimitState {
  readonly isAllowed: boolean;
  /** The calls that were counted in the window, also beyond the limit. */
  readonly count: number;
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends. */
  readonly resetSeconds: number;
}

/** Counts calls in this process, in windows of one minute. Returns null if the limit is off. */
export interface RateLimits {
  readonly count: (name: RateLimitName, caller: string) => RateLimitState | null;
  /** Takes back one call that was counted. */
  readonly uncount: (name: RateLimitName, caller: string) => void;
  /** Returns the state before another call, without counting one. */
  readonly peek: (name: RateLimitName, caller: string) => RateLimitState | null;
}

interface Window {
  count: number;
  /** `performance.now()` ms: a clock that is set makes no window longer. */
  readonly endsAt: number;
}

/** How long to wait until windows that have ended are looked for again, ms. */
const REMOVE_PAUSE_MS = 1_000;

/** The windows of one limit. All are equally long, so the first one is the next to end. */
export class Windows {
  readonly #limit: number;
  readonly #windows = new Map<number, Window>();
  #removeAt = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts a call. The first one of a counter begins its window. */
  count(counter: number): RateLimitState {
    const open = this.#find(counter);
    const window = open ?? { count: 0, endsAt: performance.now() + WINDOW_MS };
    window.count += 1;
    if (open === undefined) {
      // The one that has ended may be there still: the order of the map is that of the ends.
      this.#windows.delete(counter);
      this.#windows.set(counter, window);
    }
    return this.#stateOf(window, window.count <= this.#limit);
  }

  uncount(counter: number): void {
    const window = this.#find(counter);
    if (window !== undefined) window.count = Math.max(0, window.count - 1);
  }

  /** Returns the state before another call. Null without a call in the window. */
  peek(counter: number): RateLimitState | null {
    const window = this.#find(counter);
    return window === undefined ? null : this.#stateOf(window, window.count < this.#limit);
  }

  #find(counter: number): Window | undefined {
    const now = performance.now();
    if (now >= this.#removeAt) this.#removeEnded(now);
    const window = this.#windows.get(counter);
    return window !== undefined && window.endsAt > now ? window : undefined;
  }

  /**
   * Removes the windows that have ended. A deleted entry leaves a hole in the map until the map is built again, and a walk begins with all
   * the holes at its head: tens of thousands, with many callers. So there is a walk only when a window has ended, and one in a second.
   */
  #removeEnded(now: number): void {
    this.#removeAt = now + REMOVE_PAUSE_MS;
    for (const [counter, { endsAt }] of this.#windows) {
      if (endsAt > now) {
        this.#removeAt = Math.max(this.#removeAt, endsAt);
        break;
      }
      this.#windows.delete(counter);
    }
  }

  #stateOf({ count, endsAt }: Window, isAllowed: boolean): RateLimitState {
    return {
      isAllowed,
      count,
      limit: this.#limit,
      remaining: Math.max(0, this.#limit - count),
      resetSeconds: Math.ceil((endsAt - performance.now()) / 1_000),
    };
  }
}

/** Creates the counters of a process: at most `counters` for each limit, and at most 2^32. */
export function createRateLimits(settings: RateLimitSettings, counters = COUNTERS): RateLimits {
  const key = randomBytes(KEY_BYTES);
  const idOf = (caller: string) => counterOf(key, caller, counters);
  const limits = new Map<RateLimitName, Windows>();
  for (const [name, limit] of Object.entries(settings) as [RateLimitName, number][]) {
    if (limit > 0) limits.set(name, new Windows(limit));
  }
  return {
    count: (name, caller) => limits.get(name)?.count(idOf(caller)) ?? null,
    uncount: (name, caller) => limits.get(name)?.uncount(idOf(caller)),
    peek: (name, caller) => limits.get(name)?.peek(idOf(caller)) ?? null,
  };
}

/** Returns the 429 of a caller over a limit. */
export function overLimit({ limit, resetSeconds }: RateLimitState): ApiError {
  return new ApiError('rate_limited', {
    detail: `The limit is ${limit} calls in ${WINDOW_SECONDS} seconds. Wait for \`Retry-After\` seconds.`,
    headers: { 'Retry-After': String(Math.max(1, resetSeconds)) },
  });
}

/** Throws 429 with `Retry-After` if the caller has reached the limit. Counts nothing. */
export function refuseOverLimit(limits: RateLimits, name: RateLimitName, caller: string): void {
  const state = limits.peek(name, caller);
  if (state !== null && !state.isAllowed) throw overLimit(state);
}

/** Counts a call. Throws 429 with `Retry-After` over the limit. */
export function refuseBeyondLimit(limits: RateLimits, name: RateLimitName, caller: string): void {
  const state = limits.count(name, caller);
  if (state !== null && !state.isAllowed) throw overLimit(state);
}

/**
 * Counts a call and sets `RateLimit-Policy` and `RateLimit` of the response. Throws 429 with `Retry-After` over the
 * limit.
 */
export function limitRate(ctx: HttpContext, limits: RateLimits, name: RateLimitName, caller: string): void {
  const state = limits.count(name, caller);
  if (state === null) return;
  const { limit, remaining, resetSeconds } = state;
  ctx.set('RateLimit-Policy', `"${name}";q=${limit};w=${WINDOW_SECONDS}`);
  ctx.set('RateLimit', `"${name}";r=${remaining};t=${resetSeconds}`);
  if (!state.isAllowed) throw overLimit(state);
}
