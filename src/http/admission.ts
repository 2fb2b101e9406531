import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldSlot } from '../commands/deps.ts';
import { AdaptiveLimit } from './adaptive-limit.ts';
import { ApiError } from './errors.ts';

/** How many calls a process works on at one time. 0 means no limit. */
export interface AdmissionSettings {
  /** Of these, at most as many have their workflows awaited, and fewer while those take long. */
  readonly webhooks: number;
  /** Clicks, redirects and calls of the SDK. */
  readonly openCalls: number;
}

export const NO_ADMISSION_LIMITS: AdmissionSettings = { webhooks: 0, openCalls: 0 };

/** How long a call waits for a slot, ms. A webhook then still has time to finish before the provider gives up. */
const WAIT_MS = 1_000;
/** Which part of all slots calls hold that are answered. */
const HELD_PART = 1 / 2;
/** How many calls may wait, for each that is worked on at most. */
const WAITING_PER_CALL = 4;
/** For how long after its last call a holder counts as one that shares the slots, ms. */
const SHARES_MS = 60 * 60_000;
/** How many times an adapted limit calls of holders that have none in progress may reach. */
const FIRST_CALLS = 2;
const RETRY_AFTER_SECONDS = 5;

interface Waiter {
  readonly holder: string;
  readonly enter: () => void;
  /** Takes it out of the queue. */
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

/** How an admission differs from that of webhooks and clicks. */
export interface AdmissionRules {
  /** How many calls of one holder are worked on at one time; all by default. */
  readonly perHolder?: number;
  readonly waitMs?: number;
  readonly heldPart?: number;
  readonly waitingPerCall?: number;
  /**
   * Whether a call for which the queue has no room is refused when its wait is over: one that is refused at once may come again at once. As
   * many as are worked on at most are refused late.
   */
  readonly refusesLate?: boolean;
  /** Whether fewer calls are worked on at one time while they take long, and fewer still while several holders make calls. */
  readonly isAdaptive?: boolean;
  /** Returns a time that only advances, ms. */
  readonly elapsed?: () => number;
}

/**
 * Limits the calls that are worked on at one time, each in a slot. A short burst waits; beyond that, calls get 503 with `Retry-After`.
 * Holders (apps, creators, accounts or addresses) share the slots: the next one goes to the waiting holder with the fewest calls in
 * progress, and when the queue is full, a call of a holder with fewer waiting calls replaces one of the holder with most. So a noisy
 * holder fills what is free, and no more.
 */
export class Admission {
  readonly #most: number;
  readonly #adapted: AdaptiveLimit | null;
  readonly #sharing: Sharing;
  readonly #perHolder: number;
  readonly #waitMs: number;
  readonly #heldPart: number;
  readonly #mostWaiting: number;
  readonly #mostLate: number;
  /** The calls that are refused when their wait is over. */
  #late = 0;
  readonly #elapsed: () => number;
  /** In their order of arrival. */
  readonly #waiting: Waiter[] = [];
  #working = 0;
  /** How many of these each holder has. */
  readonly #workingOf = new Map<string, number>();
  /** How many of these are answered, and hold their slots. */
  #held = 0;

  constructor(
    limit: number,
    {
      perHolder = Number.POSITIVE_INFINITY,
      waitMs = WAIT_MS,
      heldPart = HELD_PART,
      waitingPerCall = WAITING_PER_CALL,
      refusesLate = false,
      isAdaptive = false,
      elapsed = () => performance.now(),
    }: AdmissionRules = {},
  ) {
    this.#most = limit === 0 ? Number.POSITIVE_INFINITY : limit;
    this.#adapted = isAdaptive && limit > 0 ? new AdaptiveLimit(limit, elapsed) : null;
    this.#sharing = new Sharing(elapsed);
    this.#perHolder = perHolder;
    this.#waitMs = waitMs;
    this.#heldPart = heldPart;
    this.#mostWaiting = this.#most * waitingPerCall;
    this.#mostLate = refusesLate ? this.#most : 0;
    this.#elapsed = elapsed;
  }

  get #limit(): number {
    return this.#adapted?.value ?? this.#most;
  }

  /** How many calls may be in progress when one of a holder begins: a holder without any need not wait until others have fewer. */
  #limitFor(holder: string): number {
    return this.#workingFor(holder) > 0 ? this.#limit : Math.min(this.#most, this.#limit * FIRST_CALLS);
  }

  /** Whether a holder has all the slots that it may have. */
  hasAllItsSlots(holder: string): boolean {
    return this.#workingFor(holder) >= this.#perHolder;
  }

  /** Whether a call of a holder would have to wait. */
  isFull(holder: string): boolean {
    return this.#working >= this.#limitFor(holder) || this.hasAllItsSlots(holder);
  }

  #workingFor(holder: string): number {
    return this.#workingOf.get(holder) ?? 0;
  }

  /**
   * Runs `work` of a holder when a slot is free. Throws 503 if none is in time. The slot is free again when the work has
   * ended, and also what it passed to `holdSlot`. At most a part of the slots is held in that way: deliveries that
   * are stuck leave the others room.
   */
  async run<T>(holder: string, work: (holdSlot: HoldSlot) => Promise<T>): Promise<T> {
    if (!this.#enter(holder) && !(await this.#wait(holder, this.#waitMs))) throw overloaded();
    return await this.#work(holder, work);
  }

  /**
   * The same, but returns null, and does not run the work, if no slot is free within `waitMs`. `isMeasured` returns whether the limit
   * follows how long a result took, ms.
   */
  async runWithin<T>(
    waitMs: number,
    holder: string,
    work: (holdSlot: HoldSlot) => Promise<T>,
    isMeasured: (result: T, durationMs: number) => boolean,
  ): Promise<T | null> {
    this.#sharing.note(holder);
    if (!this.#enter(holder) && !(await this.#wait(holder, waitMs))) return null;
    const from = this.#elapsed();
    return await this.#work(holder, async (holdSlot) => {
      const result = await work(holdSlot);
      const durationMs = this.#elapsed() - from;
      if (isMeasured(result, durationMs))
        this.#adapted?.note(durationMs, this.#working, this.#sharing.hasSeveral);
      return result;
    });
  }

  async #work<T>(holder: string, work: (holdSlot: HoldSlot) => Promise<T>): Promise<T> {
    let held: Promise<unknown> | null = null;
    try {
      return await work((ended) => {
        if (this.#held < this.#limit * this.#heldPart) held = ended;
      });
    } finally {
      if (held === null) this.#leave(holder);
      else void this.#leaveAfter(holder, held);
    }
  }

  async #leaveAfter(holder: string, ended: Promise<unknown>): Promise<void> {
    this.#held += 1;
    await ended;
    this.#held -= 1;
    this.#leave(holder);
  }

  /** Takes a slot for a holder. Returns whether one was free. */
  #enter(holder: string): boolean {
    if (this.isFull(holder)) return false;
    this.#begin(holder);
    return true;
  }

  /** Waits for a slot, and takes it. Returns whether it got one. */
  async #wait(holder: string, waitMs: number): Promise<boolean> {
    if (this.#waiting.length >= this.#mostWaiting && !this.#makeRoom(holder)) {
      if (this.#late < this.#mostLate) {
        this.#late += 1;
        await sleep(waitMs, undefined, { ref: false });
        this.#late -= 1;
      }
      return false;
    }
    return await new Promise<boolean>((resolve) => {
      let isLate = false;
      const end = () => {
        const at = this.#waiting.indexOf(waiter);
        if (at !== -1) this.#waiting.splice(at, 1);
      };
      const waiter: Waiter = {
        holder,
        enter: () => {
          clearTimeout(waiter.timer);
          this.#begin(holder);
          resolve(true);
        },
        refuse: () => {
          end();
          isLate = this.#late < this.#mostLate;
          if (isLate) {
            this.#late += 1;
            return;
          }
          clearTimeout(waiter.timer);
          resolve(false);
        },
        timer: setTimeout(() => {
          end();
          if (isLate) this.#late -= 1;
          resolve(false);
        }, waitMs).unref(),
      };
      this.#waiting.push(waiter);
    });
  }

  /** Refuses the latest call of the holder with most waiting calls. Returns false if that is no more than `holder` would have. */
  #makeRoom(holder: string): boolean {
    const waitingOf = new Map<string, number>();
    for (const waiter of this.#waiting) waitingOf.set(waiter.holder, (waitingOf.get(waiter.holder) ?? 0) + 1);
    const [most, count] = [...waitingOf].reduce((one, other) => (other[1] > one[1] ? other : one), ['', 0]);
    if (count <= (waitingOf.get(holder) ?? 0) + 1) return false;
    this.#waiting.findLast((waiter) => waiter.holder === most)?.refuse();
    return true;
  }

  #begin(holder: string): void {
    this.#working += 1;
    this.#workingOf.set(holder, this.#workingFor(holder) + 1);
  }

  #leave(holder: string): void {
    this.#working -= 1;
    const left = this.#workingFor(holder) - 1;
    if (left <= 0) this.#workingOf.delete(holder);
    else this.#workingOf.set(holder, left);
    // More than one slot is free when the limit has risen.
    for (;;) {
      const next = this.#nextWaiter();
      if (next === undefined || this.#working >= this.#limitFor(next.holder)) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.enter();
    }
  }

  /** Returns the waiting call of the holder with the fewest calls in progress, of its calls the one that has waited longest. */
  #nextWaiter(): Waiter | undefined {
    const working = (waiter: Waiter) => this.#workingFor(waiter.holder);
    let next: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (this.hasAllItsSlots(waiter.holder)) continue;
      if (next === undefined || working(waiter) < working(next)) next = waiter;
    }
    return next;
  }
}

/** Whether calls of more than one holder came within the last hour. */
class Sharing {
  readonly #elapsed: () => number;
  /** The holder of the last call, and when the last call of any other one was. */
  #last: { readonly holder: string; readonly at: number } | null = null;
  #otherAt = Number.NEGATIVE_INFINITY;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  get hasSeveral(): boolean {
    return this.#elapsed() - this.#otherAt < SHARES_MS;
  }

  note(holder: string): void {
    if (this.#last !== null && this.#last.holder !== holder) this.#otherAt = this.#last.at;
    this.#last = { holder, at: this.#elapsed() };
  }
}

function overloaded(): ApiError {
  return new ApiError('unavailable', {
    detail: 'The service has as many calls of this kind in progress as it can finish in time.',
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}
