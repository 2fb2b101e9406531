import { patched, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
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

/** A step that took longer was tried again, or waited for its turn, ms: the first pause between the attempts of a step. */
const WAITED_MS = 500;

/**
 * Processes one webhook delivery. The fast path runs the six steps in one local activity. When it fails, the same six
 * functions run one by one as activities that retry without limit, until one has the outcome. The UI then lists the delivery under
 * `DeliveryState STARTS_WITH "stuck:"` with its step, attempt and last failure; it continues automatically.
 *
 * After the first step that had to wait, the fast path is tried once more: what the step waited for is available again, often for many deliveries at
 * once, and the steps that are left would cost Temporal several times as much.
 *
 * @startedBy the receipt of a webhook; the relay
 */
export async function delivery({ deliveryId }: DeliveryInput): Promise<DeliveryOutcome> {
  const fallback = new Fallback();
  let failure: unknown;
  let isTriedAgain = false;
  const quickly = async (): Promise<DeliveryOutcome | null> => {
    try {
      return await fast.processDelivery(deliveryId);
    } catch (error) {
      failure = error;
      return null;
    }
  };
  const untilDone = async <T extends DeliveryOutcome | null>(
    name: DeliveryStep,
    does: string,
    run: (id: string) => Promise<T>,
  ): Promise<T | DeliveryOutcome> => {
    const step = { name, does };
    const cause = failure;
    await fallback.markStuck(step, cause);
    const begin = Date.now();
    let outcome: T | DeliveryOutcome = await run(deliveryId);
    const waited = Date.now() - begin >= WAITED_MS;
    if (outcome === null && waited && !isTriedAgain && patched('quickly-after-waiting')) {
      isTriedAgain = true;
      outcome = (await quickly()) ?? outcome;
    }
    if (outcome !== null) fallback.markHealed(step, cause);
    return outcome;
  };
  const outcome =
    (await quickly()) ??
    (await untilDone('verify', 'check the signature of the webhook again', steps.verify)) ??
    (await untilDone('storeRaw', 'read the stored body of the webhook', steps.storeRaw)) ??
    (await untilDone('normalize', 'parse the body of the webhook', steps.normalize)) ??
    (await untilDone('dedupe', 'store the event, its payment and its refunds, each once', steps.dedupe)) ??
    (await untilDone('attribute', 'bind the users and read the payments', steps.attribute)) ??
    (await untilDone('writeCommission', 'book the commission', steps.writeCommission));
  fallback.report(outcomeDetails(outcome));
  return outcome;
}
