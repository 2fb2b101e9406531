import {
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { DeliveryActivities } from '../activities/delivery.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import { DELIVERY_STEPS } from '../src/domain/delivery.ts';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { DeliveryInput } from '../src/domain/workflow-contracts.ts';

const fast = proxyLocalActivities<Pick<DeliveryActivities, 'processDelivery'>>(FAST_PATH);
const steps = proxyActivities<DeliveryActivities>(UNTIL_DONE);

function causeOf(error: unknown): string {
  const failure = error as Partial<ActivityFailure>;
  return failure.cause?.message ?? failure.message ?? 'unknown';
}

/**
 * Processes one webhook delivery. The fast path runs the six steps in one local activity. When it fails, the same six
 * functions run one by one as activities that retry without limit. The UI then lists the delivery under
 * `DeliveryState STARTS_WITH "stuck:"` with its step, attempt and last failure; it continues automatically.
 */
export async function delivery({ deliveryId }: DeliveryInput): Promise<DeliveryOutcome> {
  try {
    return await fast.processDelivery(deliveryId);
  } catch (error) {
    setCurrentDetails(`The fast path failed: ${causeOf(error)}. The steps now run one by one.`);
  }
  for (const step of DELIVERY_STEPS) {
    upsertSearchAttributes({ DeliveryState: [`stuck:${step}`] });
    const outcome = await steps[step](deliveryId);
    if (outcome !== null) {
      upsertSearchAttributes({ DeliveryState: ['healed'] });
      setCurrentDetails(`Finished in step ${step}, after a failure.`);
      return outcome;
    }
  }
  // Unreachable, because the last step always has an outcome; the return type needs it.
  return { status: 'duplicate' };
}
