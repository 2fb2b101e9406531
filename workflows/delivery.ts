import {
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { DeliveryActivities } from '../activities/delivery.ts';
import { IN_ONE_GO, UNTIL_DONE } from './options.ts';
import { DELIVERY_STEPS } from '../src/domain/delivery.ts';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { DeliveryInput } from '../src/domain/workflow-contracts.ts';

const quick = proxyLocalActivities<Pick<DeliveryActivities, 'processDelivery'>>(IN_ONE_GO);
const steps = proxyActivities<DeliveryActivities>(UNTIL_DONE);

function causeOf(error: unknown): string {
  const failure = error as Partial<ActivityFailure>;
  return failure.cause?.message ?? failure.message ?? 'unknown';
}

/**
 * One webhook delivery. The happy path runs the six steps in one go as a local activity. When that fails, the same six
 * functions run one by one as activities that retry for ever: a stuck delivery stands in the UI under
 * `DeliveryState STARTS_WITH "stuck:"` with its step, attempt and last failure, and goes on by itself.
 */
export async function delivery({ deliveryId }: DeliveryInput): Promise<DeliveryOutcome> {
  try {
    return await quick.processDelivery(deliveryId);
  } catch (error) {
    setCurrentDetails(`In one go it failed: ${causeOf(error)}. Now step by step.`);
  }
  for (const step of DELIVERY_STEPS) {
    upsertSearchAttributes({ DeliveryState: [`stuck:${step}`] });
    const result = await steps[step](deliveryId);
    if (result !== null) {
      upsertSearchAttributes({ DeliveryState: ['healed'] });
      setCurrentDetails(`Done in step ${step}, after trouble.`);
      return result;
    }
  }
  // Unreachable: the last step always has a result. Kept so that the type says so.
  return { status: 'duplicate' };
}
