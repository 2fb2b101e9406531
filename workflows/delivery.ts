import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { DeliveryActivities } from '../activities/delivery.ts';
import { outcomeDetails } from './details.ts';
import { Fallback } from './fallback.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import type { DeliveryOutcome, DeliveryStep } from '../src/domain/delivery.ts';
import type { DeliveryInput } from '../src/domain/workflow-contracts.ts';

const fast = proxyLocalActivities<Pick<DeliveryActivities, 'processDelivery'>>(FAST_PATH);
const steps = proxyActivities<DeliveryActivities>(UNTIL_DONE);

/**
 * Processes one webhook delivery. The fast path runs the six steps in one local activity. When it fails, the same six
 * functions run one by one as activities that retry without limit, until one has the outcome. The UI then lists the delivery under
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
  const untilDone = async <T extends DeliveryOutcome | null>(
    step: DeliveryStep,
    run: (id: string) => Promise<T>,
  ): Promise<T> => {
    await fallback.markStuck(step, failure);
    const outcome = await run(deliveryId);
    if (outcome !== null) {
      fallback.markHealed(step, failure);
      fallback.report(outcomeDetails(outcome));
    }
    return outcome;
  };
  return (
    (await untilDone('verify', steps.verify)) ??
    (await untilDone('storeRaw', steps.storeRaw)) ??
    (await untilDone('normalize', steps.normalize)) ??
    (await untilDone('dedupe', steps.dedupe)) ??
    (await untilDone('attribute', steps.attribute)) ??
    (await untilDone('writeCommission', steps.writeCommission))
  );
}
