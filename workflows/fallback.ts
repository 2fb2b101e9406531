import {
  isCancellation,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { MarkingActivities } from '../activities/marking.ts';
import { ONE_QUESTION } from './options.ts';

const { canMark } = proxyLocalActivities<MarkingActivities>(ONE_QUESTION);

function causeOf(error: unknown): string {
  const failure = error as Partial<ActivityFailure>;
  return failure.cause?.message ?? failure.message ?? 'unknown';
}

/**
 * The fallback of a workflow: when a quick attempt at a step fails, the step runs again and retries without limit, and
 * the UI lists the workflow under `DeliveryState STARTS_WITH "stuck:"`. The attribute is set only where the namespace
 * has it: a server rejects every workflow task that sets an unknown one. A rejected task asks again when it is retried.
 */
export class Fallback {
  #canMark: boolean | null = null;

  /**
   * Runs `quick`; when it fails, marks the workflow as stuck in `step` and runs `untilDone`. Throws a failure that a retry
   * can't help, and a cancellation.
   */
  async run<T>(step: string, quick: () => Promise<T>, untilDone: () => Promise<T>): Promise<T> {
    try {
      return await quick();
    } catch (error) {
      if (isCancellation(error)) throw error;
      if ((error as Partial<ActivityFailure>).retryState === 'NON_RETRYABLE_FAILURE') throw error;
      this.describe(step, error);
    }
    await this.markStuck(step);
    const result = await untilDone();
    this.markHealed(step);
    return result;
  }

  /** Says in the current details of the workflow what failed and why. */
  describe(what: string, error: unknown): void {
    setCurrentDetails(`${what} failed: ${causeOf(error)}. The work is retried without limit.`);
  }

  /** Marks the workflow as stuck in a step. */
  async markStuck(step: string): Promise<void> {
    this.#canMark ??= await canMark().catch(() => false);
    if (this.#canMark) upsertSearchAttributes({ DeliveryState: [`stuck:${step}`] });
  }

  /** Marks the workflow as healed, after `markStuck`. */
  markHealed(step: string): void {
    if (this.#canMark === true) upsertSearchAttributes({ DeliveryState: ['healed'] });
    setCurrentDetails(`Finished in step ${step}, after a failure.`);
  }
}
