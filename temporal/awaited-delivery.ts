import type { Logger } from 'pino';
import type { HoldSlot } from '../src/commands/deps.ts';
import type { DeliveryKeys, DeliveryOutcome } from '../src/domain/delivery.ts';
import type { AwaitedCalls } from './awaited-calls.ts';
import { deadlineOf, LATE_RESULT_MS } from './awaited-results.ts';
import type { AwaitedResults } from './awaited-results.ts';
import type { Starter } from './start.ts';

/** How long a delivery that was answered as pending holds its slot at most, ms. */
const LATE_DELIVERY_MS = 15_000;
/** Workers that have finished no delivery for as long count as unavailable, ms. */
const WORKERS_UNAVAILABLE_MS = 5_000;
/** How long the relay waits for the outcome of a delivery before it starts another one, ms. */
export const RELAY_WAIT_MS = 2_000;

/** What became of work that the relay passed to Temporal. */
export type RelayedStart = 'started' | 'running' | 'refused';

export interface AwaitedDeps {
  readonly starter: Starter;
  readonly results: AwaitedResults;
  readonly awaited: AwaitedCalls;
  readonly logger: Logger;
}

/** Deliveries whose outcome somebody waits for. */
export function awaitedDeliveries({ starter, results, awaited, logger }: AwaitedDeps) {
  return {
    /** See `WorkflowStarter.awaitDelivery`. */
    async awaitDelivery(
      delivery: DeliveryKeys,
      waitMs: number,
      holdSlot?: HoldSlot,
    ): Promise<DeliveryOutcome | null> {
      const { deliveryId } = delivery;
      const notice = (settled: Promise<void>) => {
        // Without workers a late delivery says nothing about the load: it is stored, and others must be stored as well.
        if (performance.now() - results.lastOutcomeAt < WORKERS_UNAVAILABLE_MS) holdSlot?.(settled);
      };
      try {
        const start = async () => {
          const started = await starter.startDelivery(delivery);
          if (started === undefined) return null;
          return {
            fetchAfterMs: started.isLocal ? LATE_RESULT_MS : results.fetchAfterMs,
            fetch: async (endsAt: number) =>
              (await starter.call(async () => await started.handle.result(), deadlineOf(endsAt))) ?? null,
          };
        };
        const late = { forMs: LATE_DELIVERY_MS, notice };
        const outcome = await awaited.run(() => results.outcomes.wait(deliveryId, { waitMs, start, late }));
        if (outcome !== null) results.lastOutcomeAt = performance.now();
        return outcome;
      } catch (error) {
        logger.warn({
          deliveryId,
          err: error,
          msg: 'the delivery is stored, but its workflow may not have started; the relay checks it',
        });
        return null;
      }
    },

    /**
     * Starts a delivery's workflow and waits a moment for its outcome, so that the relay starts only what the workers can
     * do. A workflow that runs already is left alone. Returns `refused` when Temporal did not take the delivery. Never throws:
     * the relay repeats it.
     */
    async runDelivery(delivery: DeliveryKeys, signal?: AbortSignal): Promise<RelayedStart> {
      const { deliveryId } = delivery;
      let result: RelayedStart = 'refused';
      try {
        await results.outcomes.wait(deliveryId, {
          waitMs: RELAY_WAIT_MS,
          ...(signal === undefined ? {} : { signal }),
          start: async () => {
            const started = await starter.startDelivery(delivery);
            if (started === undefined) return null;
            result = started.isNew ? 'started' : 'running';
            return started.isNew ? { fetchAfterMs: Infinity, fetch: async () => null } : null;
          },
        });
        return result;
      } catch (error) {
        logger.warn({
          deliveryId,
          err: error,
          msg: 'the workflow of a delivery did not start; the relay tries again',
        });
        return 'refused';
      }
    },
  };
}
