import {
  isCancellation,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { MarkingActivities } from '../activities/marking.ts';
import { causeOf, healedDetails, stuckDetails } from './details.ts';
import type { Step } from './details.ts';
import { ASKED_ONCE } from './options.ts';

const { canMark } = proxyLocalActivities<MarkingActivities>(ASKED_ONCE);

/**
 * The fallback of a workflow: when a quick attempt at a step fails, the step runs again and retries without limit, and
 * the UI lists the workflow under `DeliveryState STARTS_WITH "stuck:"`. The attribute is set only where the namespace
 * has it: a server rejects every workflow task that sets an unknown one. A rejected task asks again when it is retried.
 */
export class Fallback {
  #canMark: boolean | null = null;
  /** What failed and was healed last; empty when nothing was. */
  #healed = '';

  /**
   * Runs `quick`; when it fails, marks the workflow as stuck in `step` and runs `untilDone`. Throws a failure that a retry
   * can't help, and a cancellation.
   */
  async run<T>(step: Step, quick: () => Promise<T>, untilDone: () => Promise<T>): Promise<T> {
    try {
      return await quick();
    } catch (error) {
      if (isCancellation(error)) throw error;
      if ((error as Partial<ActivityFailure>).retryState === 'NON_RETRYABLE_FAILURE') throw error;
      await this.markStuck(step, error);
      const result = await untilDone();
      this.markHealed(step, error);
      return result;
    }
  }

  /** Marks the workflow as stuck in a step, and says in its current details what failed first. */
  async markStuck(step: Step, error: unknown): Promise<void> {
    setCurrentDetails(stuckDetails(step, causeOf(error)));
    this.#canMark ??= await canMark().catch(() => false);
    if (this.#canMark) upsertSearchAttributes({ DeliveryState: [`stuck:${step.name}`] });
  }

  /** Marks the workflow as healed, after `markStuck`. */
  markHealed(step: Step, error: unknown): void {
    if (this.#canMark === true) upsertSearchAttributes({ DeliveryState: ['healed'] });
    this.#healed = healedDetails(step, causeOf(error));
    setCurrentDetails(this.#healed);
  }

  /** Says in the current details what the workflow has done, and what was healed meanwhile. */
  report(done: string): void {
    setCurrentDetails([this.#healed, done].filter((text) => text !== '').join('\n\n'));
  }
}
