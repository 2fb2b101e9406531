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
  readonly enter: () => void;
  readonly timer: NodeJS.Timeout;
}

/** Limits the calls that are worked on at one time. A short burst waits; beyond that, calls get 503 with `Retry-After`. */
export class Admission {
  readonly #limit: number;
  readonly #waiting: Waiter[] = [];
  #working = 0;
  /** How many of these are answered, and keep their places. */
  #kept = 0;

  constructor(limit: number) {
    this.#limit = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  }

  /**
   * Runs `work` when there is room. Throws 503 if there is none within a second. The place is free again when the work has
   * ended, and also what it passed to `keepPlace`. At most half of the places are kept in that way: deliveries that are
   * stuck leave the others room.
   */
  async run<T>(work: (keepPlace: KeepPlace) => Promise<T>): Promise<T> {
    await this.#enter();
    let kept: Promise<unknown> | null = null;
    try {
      return await work((ended) => {
        if (this.#kept < this.#limit / 2) kept = ended;
      });
    } finally {
      if (kept === null) this.#leave();
      else void this.#leaveAfter(kept);
    }
  }

  async #leaveAfter(ended: Promise<unknown>): Promise<void> {
    this.#kept += 1;
    await ended;
    this.#kept -= 1;
    this.#leave();
  }

  async #enter(): Promise<void> {
    if (this.#working < this.#limit) {
      this.#working += 1;
      return;
    }
    if (this.#waiting.length >= this.#limit * WAITING_PER_CALL) throw overloaded();
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        enter: () => {
          clearTimeout(waiter.timer);
          resolve();
        },
        timer: setTimeout(() => {
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
          reject(overloaded());
        }, WAIT_MS),
      };
      this.#waiting.push(waiter);
    });
  }

  /** Passes the place to the call that has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#working -= 1;
    else next.enter();
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
