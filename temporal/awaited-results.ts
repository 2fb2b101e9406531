import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import { PendingResults } from './pending-results.ts';
import type { SharedResult } from './shared-results.ts';

export interface AwaitedResultsDeps {
  /** Whether a worker of the task queue of awaited work runs in this process. */
  readonly hasWorker: boolean;
  /** Sends a result for which nobody waits here to the other processes. */
  readonly sendResult?: (result: SharedResult) => void;
  /** Whether results of other processes arrive as far as is known. They are fetched early if not. */
  readonly isListening?: () => boolean;
}

/** After this a result that its worker should have reported is fetched from Temporal. */
export const LATE_RESULT_MS = 1_000;
/** The same for work that another process may have taken. */
const EARLY_FETCH_MS = 200;

/** Returns the deadline of a call of the Temporal SDK, epoch ms, for an end in `performance.now()` ms. */
export const deadlineOf = (endsAt: number): number => Date.now() + endsAt - performance.now();

/** The results of workflows that requests of this process wait for. Workers report them here, or to the other processes. */
export class AwaitedResults {
  readonly outcomes = new PendingResults<DeliveryOutcome>();
  readonly settledRequests = new PendingResults<true>();
  /** When an outcome of any delivery was last seen, `performance.now()` ms. */
  lastOutcomeAt = -Infinity;
  readonly #deps: AwaitedResultsDeps;

  constructor(deps: AwaitedResultsDeps) {
    this.#deps = deps;
  }

  /** Passes a result to the requests that wait for it here. Returns whether there was one. */
  receive(result: SharedResult): boolean {
    if (!('outcome' in result)) return this.settledRequests.settle(result.payoutRequestId, true);
    this.lastOutcomeAt = performance.now();
    return this.outcomes.settle(result.deliveryId, result.outcome);
  }

  /** Passes a result to the requests that wait for it: here, else in the other processes. */
  report(result: SharedResult): void {
    if (!this.receive(result)) this.#deps.sendResult?.(result);
  }

  /** When the result of work that any process may have is fetched, ms after its start. */
  get fetchAfterMs(): number {
    if (this.#deps.isListening?.() === true) return LATE_RESULT_MS;
    return this.#deps.hasWorker ? EARLY_FETCH_MS : 0;
  }
}
