import type { KeepPlace } from '../commands/deps.ts';
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

/** How long a call waits for its turn, ms. A webhook then still has time to finish before the provider gives up. */
const WAIT_MS = 1_000;
/** Which part of all places calls keep that are answered. */
const KEPT_PART = 1 / 2;
/** How many calls may wait, for each that is worked on at most. */
const WAITING_PER_CALL = 4;
/** How many are worked on at least where the limit follows their duration: other work on the machine makes them slow as well. */
const LEAST_ADAPTED = 8;
const RETRY_AFTER_SECONDS = 5;

interface Waiter {
  readonly app: string;
  readonly enter: () => void;
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

/** How an admission differs from that of webhooks and clicks. */
export interface AdmissionRules {
  /** How many calls of one app are worked on at one time; all by default. */
  readonly perApp?: number;
  readonly waitMs?: number;
  readonly keptPart?: number;
  readonly waitingPerCall?: number;
  /** Whether fewer calls are worked on at one time while they take long. */
  readonly isAdaptive?: boolean;
  /** Returns a time that only advances, ms. */
  readonly elapsed?: () => number;
}

/**
 * Limits the calls that are worked on at one time. A short burst waits; beyond that, calls get 503 with `Retry-After`. Apps share the
 * places: the next one goes to the waiting app with the fewest calls in progress, and while all places to wait are taken, a call of
 * an app that has fewer of them takes the one of the app that has most. So a noisy app fills what is free, and no more.
 */
export class Admission {
  readonly #most: number;
  readonly #adapted: AdaptiveLimit | null;
  readonly #perApp: number;
  readonly #waitMs: number;
  readonly #keptPart: number;
  readonly #mostWaiting: number;
  readonly #elapsed: () => number;
  /** In their order of arrival. */
  readonly #waiting: Waiter[] = [];
  #working = 0;
  /** How many of these each app has. */
  readonly #workingOf = new Map<string, number>();
  /** How many of these are answered, and keep their places. */
  #kept = 0;

  constructor(
    limit: number,
    {
      perApp = Number.POSITIVE_INFINITY,
      waitMs = WAIT_MS,
      keptPart = KEPT_PART,
      waitingPerCall = WAITING_PER_CALL,
      isAdaptive = false,
      elapsed = () => performance.now(),
    }: AdmissionRules = {},
  ) {
    this.#most = limit === 0 ? Number.POSITIVE_INFINITY : limit;
    this.#adapted =
      isAdaptive && limit > 0 ? new AdaptiveLimit({ least: LEAST_ADAPTED, most: limit }, elapsed) : null;
    this.#perApp = perApp;
    this.#waitMs = waitMs;
    this.#keptPart = keptPart;
    this.#mostWaiting = this.#most * waitingPerCall;
    this.#elapsed = elapsed;
  }

  get #limit(): number {
    return this.#adapted?.value ?? this.#most;
  }

  /** Whether an app has all the places that it may have. */
  hasItsPlaces(app: string): boolean {
    return this.#workingFor(app) >= this.#perApp;
  }

  /** Whether a call of an app would have to wait. */
  isFull(app: string): boolean {
    return this.#working >= this.#limit || this.hasItsPlaces(app);
  }

  #workingFor(app: string): number {
    return this.#workingOf.get(app) ?? 0;
  }

  /**
   * Runs `work` of an app when there is room. Throws 503 if there is none in time. The place is free again when the work has
   * ended, and also what it passed to `keepPlace`. At most a part of the places is kept in that way: deliveries that
   * are stuck leave the others room.
   */
  async run<T>(app: string, work: (keepPlace: KeepPlace) => Promise<T>): Promise<T> {
    if (!this.#enter(app) && !(await this.#wait(app, this.#waitMs))) throw overloaded();
    return await this.#work(app, work);
  }

  /**
   * The same, but returns null, and does not run the work, if there is no room within `waitMs`. `isMeasured` returns whether the limit
   * follows how long a result took, ms.
   */
  async runWithin<T>(
    waitMs: number,
    app: string,
    work: (keepPlace: KeepPlace) => Promise<T>,
    isMeasured: (result: T, durationMs: number) => boolean,
  ): Promise<T | null> {
    if (!this.#enter(app) && !(await this.#wait(app, waitMs))) return null;
    const from = this.#elapsed();
    return await this.#work(app, async (keepPlace) => {
      const result = await work(keepPlace);
      const durationMs = this.#elapsed() - from;
      if (isMeasured(result, durationMs)) this.#adapted?.note(durationMs, this.#working);
      return result;
    });
  }

  async #work<T>(app: string, work: (keepPlace: KeepPlace) => Promise<T>): Promise<T> {
    let kept: Promise<unknown> | null = null;
    try {
      return await work((ended) => {
        if (this.#kept < this.#limit * this.#keptPart) kept = ended;
      });
    } finally {
      if (kept === null) this.#leave(app);
      else void this.#leaveAfter(app, kept);
    }
  }

  async #leaveAfter(app: string, ended: Promise<unknown>): Promise<void> {
    this.#kept += 1;
    await ended;
    this.#kept -= 1;
    this.#leave(app);
  }

  /** Takes a place for an app. Returns whether there was one. */
  #enter(app: string): boolean {
    if (this.isFull(app)) return false;
    this.#begin(app);
    return true;
  }

  /** Waits for a place of an app, and takes it. Returns whether it got one. */
  async #wait(app: string, waitMs: number): Promise<boolean> {
    if (this.#waiting.length >= this.#mostWaiting && !this.#makeRoom(app)) return false;
    return await new Promise<boolean>((resolve) => {
      const waiter: Waiter = {
        app,
        enter: () => {
          clearTimeout(waiter.timer);
          this.#begin(app);
          resolve(true);
        },
        refuse: () => {
          clearTimeout(waiter.timer);
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
          resolve(false);
        },
        timer: setTimeout(() => waiter.refuse(), waitMs).unref(),
      };
      this.#waiting.push(waiter);
    });
  }

  /** Refuses the latest call of the app with most waiting calls. Returns false if that is no more than `app` would have. */
  #makeRoom(app: string): boolean {
    const waitingOf = new Map<string, number>();
    for (const waiter of this.#waiting) waitingOf.set(waiter.app, (waitingOf.get(waiter.app) ?? 0) + 1);
    const [most, count] = [...waitingOf].reduce((one, other) => (other[1] > one[1] ? other : one), ['', 0]);
    if (count <= (waitingOf.get(app) ?? 0) + 1) return false;
    this.#waiting.findLast((waiter) => waiter.app === most)?.refuse();
    return true;
  }

  #begin(app: string): void {
    this.#working += 1;
    this.#workingOf.set(app, this.#workingFor(app) + 1);
  }

  #leave(app: string): void {
    this.#working -= 1;
    const left = this.#workingFor(app) - 1;
    if (left <= 0) this.#workingOf.delete(app);
    else this.#workingOf.set(app, left);
    // More than one place is free when the limit has risen.
    while (this.#working < this.#limit) {
      const next = this.#nextWaiter();
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.enter();
    }
  }

  /** Returns the waiting call of the app with the fewest calls in progress, of its calls the one that has waited longest. */
  #nextWaiter(): Waiter | undefined {
    const working = (waiter: Waiter) => this.#workingFor(waiter.app);
    let next: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (this.hasItsPlaces(waiter.app)) continue;
      if (next === undefined || working(waiter) < working(next)) next = waiter;
    }
    return next;
  }
}

function overloaded(): ApiError {
  return new ApiError('unavailable', {
    detail: 'The service has as many calls of this kind in progress as it can finish in time.',
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}
