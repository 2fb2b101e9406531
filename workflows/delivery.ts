import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { DeliveryActivities } from '../activities/delivery.ts';
import { outcomeDetails } from './details.ts';
import { Fallback } from './fallback.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import { DELIVERY_STEPS } from '../src/domain/delivery.ts';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { DeliveryInput } from '../src/domain/workflow-contracts.ts';

const fast = proxyLocalActivities<Pick<DeliveryActivities, 'processDelivery'>>(FAST_PATH);
const steps = proxyActivities<DeliveryActivities>(UNTIL_DONE);

/**
 * Processes one webhook delivery. The fast path runs the six steps in one local activity. When it fails, the same six
 * functions run one by one as activities that retry without limit. The UI then lists the delivery under
 * `DeliveryState STARTS_WITH "stuck:"` with its step, attempt and last failure; it continues automatically.
 */
export async function delivery({ deliveryId }: DeliveryInput): Promise<DeliveryOutcome> {
  const fallback = new Fallback();
  let failure: unknown;
  try {
    const outcome = await fast.processDelivery(deliveryId);
    fallback.report(outcomeDetails(outcome));
    return outcome;
  } catch (error) {
    failure = error;
  }
  for (const step of DELIVERY_STEPS) {
    await fallback.markStuck(step, failure);
    const outcome = await steps[step](deliveryId);
    if (outcome !== null) {
      fallback.markHealed(step, failure);
      fallback.report(outcomeDetails(outcome));
      return outcome;
    }
  }
  // Unreachable, because the last step always has an outcome; the return type needs it.
  return { status: 'duplicate' };
}
