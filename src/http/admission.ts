import { createSharedAssociations } from '../commands/shared-associations.ts';
import type { SharedAssociations, SharedHostApps } from '../commands/shared-associations.ts';
import type { Sql } from '../db/sql.ts';
import type { KeepPlace } from '../commands/deps.ts';
import { ApiError } from './errors.ts';

/** How many calls a process works on at one time. 0 means no limit. */
export interface AdmissionSettings {
  readonly webhooks: number;
  /** Clicks, redirects and calls of the SDK. */
  readonly openCalls: number;
}

export const NO_ADMISSION_LIMITS: AdmissionSettings = { webhooks: 0, openCalls: 0 };

/** How long a call waits for its turn, ms. A webhook then still has time to finish before the provider gives up. */
const WAIT_MS = 1_000;
/** How many calls may wait, for each that is worked on. */
const WAITING_PER_CALL = 4;
const RETRY_AFTER_SECONDS = 5;

interface Waiter {
  readonly app: string;
  readonly enter: () => void;
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Limits the calls that are worked on at one time. A short burst waits; beyond that, calls get 503 with `Retry-After`. Apps share the
 * places: the next one goes to the waiting app with the fewest calls in progress, and while all places to wait are taken, a call of
 * an app that has fewer of them takes the one of the app that has most. So a noisy app fills what is free, and no more.
 */
export class Admission {
  readonly #limit: number;
  /** In their order of arrival. */
  readonly #waiting: Waiter[] = [];
  #working = 0;
  /** How many of these each app has. */
  readonly #workingOf = new Map<string, number>();
  /** How many of these are answered, and keep their places. */
  #kept = 0;

  constructor(limit: number) {
    this.#limit = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  }

  /**
   * Runs `work` of an app when there is room. Throws 503 if there is none within a second. The place is free again when the work has
   * ended, and also what it passed to `keepPlace`. At most half of the places are kept in that way: deliveries that are
   * stuck leave the others room.
   */
  async run<T>(app: string, work: (keepPlace: KeepPlace) => Promise<T>): Promise<T> {
    await this.#enter(app);
    let kept: Promise<unknown> | null = null;
    try {
      return await work((ended) => {
        if (this.#kept < this.#limit / 2) kept = ended;
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

  async #enter(app: string): Promise<void> {
    if (this.#working < this.#limit) {
      this.#begin(app);
      return;
    }
    if (this.#waiting.length >= this.#limit * WAITING_PER_CALL) this.#makeRoom(app);
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        app,
        enter: () => {
          clearTimeout(waiter.timer);
          this.#begin(app);
          resolve();
        },
        refuse: () => {
          clearTimeout(waiter.timer);
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
          reject(overloaded());
        },
        timer: setTimeout(() => waiter.refuse(), WAIT_MS),
      };
      this.#waiting.push(waiter);
    });
  }

  /** Refuses the latest call of the app with most waiting calls. Throws if that is no more than `app` would have. */
  #makeRoom(app: string): void {
    const waitingOf = new Map<string, number>();
    for (const waiter of this.#waiting) waitingOf.set(waiter.app, (waitingOf.get(waiter.app) ?? 0) + 1);
    const [most, count] = [...waitingOf].reduce((one, other) => (other[1] > one[1] ? other : one), ['', 0]);
    if (count <= (waitingOf.get(app) ?? 0) + 1) throw overloaded();
    this.#waiting.findLast((waiter) => waiter.app === most)?.refuse();
  }

  #begin(app: string): void {
    this.#working += 1;
    this.#workingOf.set(app, (this.#workingOf.get(app) ?? 0) + 1);
  }

  /** Passes the place to the app with the fewest calls in progress, and of its calls to the one that has waited longest. */
  #leave(app: string): void {
    this.#working -= 1;
    const left = (this.#workingOf.get(app) ?? 1) - 1;
    if (left === 0) this.#workingOf.delete(app);
    else this.#workingOf.set(app, left);
    const working = (waiter: Waiter) => this.#workingOf.get(waiter.app) ?? 0;
    let next: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (next === undefined || working(waiter) < working(next)) next = waiter;
    }
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    next.enter();
  }
}

function overloaded(): ApiError {
  return new ApiError('unavailable', {
    detail: 'The service has as many calls of this kind in progress as it can finish in time.',
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}

/**
 * What calls from outside get: webhooks, clicks, redirects, the SDK. They have a share of the database connections, so
 * that however many arrive, reads, exports and health checks find a connection.
 */
export interface Intake {
  readonly sql: Sql;
  readonly webhooks: Admission;
  readonly openCalls: Admission;
  readonly sharedAssociations: SharedAssociations;
}

/** Creates the limits of a process. `sql` is the share of the pool. */
export function createIntake(sql: Sql, settings: AdmissionSettings, sharedHostApps?: SharedHostApps): Intake {
  return {
    sql,
    webhooks: new Admission(settings.webhooks),
    openCalls: new Admission(settings.openCalls),
    sharedAssociations: createSharedAssociations(sql, sharedHostApps),
  };
}
