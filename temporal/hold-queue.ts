import type { Logger } from 'pino';
import type { HeldCommission } from '../src/db/maturing.ts';

/** Starts in flight at once. Two leave the server free for requests that wait for a response. */
const PARALLEL_STARTS = 2;
/** Hold timers that may wait for their start; the sweep matures the commissions of the rest. */
const MAX_WAITING = 100_000;

export interface HoldQueueDeps {
  readonly startHold: (commission: HeldCommission) => Promise<unknown>;
  /** Runs work in the background and logs its failure. */
  readonly inBackground: (work: Promise<unknown>) => void;
  readonly logger: Logger;
}

/** The hold timers that wait for their start. They are started a few at a time, after the responses of their requests. */
export class HoldQueue {
  readonly #deps: HoldQueueDeps;
  readonly #waiting: HeldCommission[] = [];
  #starters = 0;
  /** `performance.now()` ms after which no hold timer is started; Infinity until the queue is stopped. */
  #endsAt = Infinity;

  constructor(deps: HoldQueueDeps) {
    this.#deps = deps;
  }

  add(commissions: readonly HeldCommission[]): void {
    if (commissions.length === 0 || this.#endsAt !== Infinity) return;
    const room = MAX_WAITING - this.#waiting.length;
    this.#waiting.push(...commissions.slice(0, room));
    if (room < commissions.length) {
      this.#deps.logger.warn({
        msg: 'too many hold timers wait for their start; the sweep matures the rest',
      });
    }
    // Deferred: the request that waits for this commission comes first.
    setImmediate(() => {
      if (this.#waiting.length > 0 && this.#starters < PARALLEL_STARTS) {
        this.#deps.inBackground(this.#startWaiting());
      }
    });
  }

  /**
   * Starts waiting hold timers for at most `withinMs` more, and takes no others. The sweep matures the commissions of
   * those that are left over.
   */
  async stop(withinMs: number): Promise<void> {
    this.#endsAt = performance.now() + withinMs;
    await Promise.allSettled([this.#startWaiting(), this.#startWaiting()]);
    const left = this.#waiting.length;
    this.#waiting.length = 0;
    if (left > 0) {
      this.#deps.logger.warn({
        left,
        msg: 'stopped before all hold timers were started; the sweep matures the rest',
      });
    }
  }

  async #startWaiting(): Promise<void> {
    this.#starters += 1;
    try {
      while (performance.now() < this.#endsAt) {
        const next = this.#waiting.shift();
        if (next === undefined) return;
        await this.#deps.startHold(next);
      }
    } finally {
      this.#starters -= 1;
    }
  }
}
