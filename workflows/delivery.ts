import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { DeliveryActivities } from '../activities/delivery.ts';
import { outcomeDetails } from './details.ts';
import { Fallback } from './fallback.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import type { DeliveryOutcome, DeliveryStep } from '../src/domain/delivery.ts';

export interface DeliveryInput {
  readonly deliveryId: string;
}

const fast = proxyLocalActivities<Pick<DeliveryActivities, 'processDelivery'>>(FAST_PATH);
const steps = proxyActivities<DeliveryActivities>(UNTIL_DONE);

/**
 * Processes one webhook delivery. The fast path runs the six steps in one local activity. When it fails, the same six
 * functions run one by one as activities that retry without limit, until one has the outcome. The UI then lists the delivery under
 * `DeliveryState STARTS_WITH "stuck:"` with its step, attempt and last failure; it continues automatically.
 *
 * @startedBy the receipt of a webhook; the relay
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
    name: DeliveryStep,
    does: string,
    run: (id: string) => Promise<T>,
  ): Promise<T> => {
    const step = { name, does };
    await fallback.markStuck(step, failure);
    const outcome = await run(deliveryId);
    if (outcome !== null) {
      fallback.markHealed(step, failure);
      fallback.report(outcomeDetails(outcome));
    }
    return outcome;
  };
  return (
    (await untilDone('verify', 'check the signature of the webhook again', steps.verify)) ??
    (await untilDone('storeRaw', 'read the stored body of the webhook', steps.storeRaw)) ??
    (await untilDone('normalize', 'parse the body of the webhook', steps.normalize)) ??
    (await untilDone('dedupe', 'store the event, its payment and its refunds, each once', steps.dedupe)) ??
    (await untilDone('attribute', 'find the affiliate of the purchase', steps.attribute)) ??
    (await untilDone('writeCommission', 'book the commission', steps.writeCommission))
  );
}
