import {
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { WebhookActivities, WebhookProgress } from '../activities/webhook.ts';
import { messageDetails } from './details.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';
import { SEND_NOW } from '../src/domain/signals.ts';

export interface WebhookInput {
  readonly messageId: string;
}

const briefly = proxyActivities<WebhookActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<WebhookActivities>(UNTIL_DONE);

const SEND_MESSAGE = { name: 'sendMessage', does: 'make an attempt at a message to an endpoint' };

const sendNow = defineSignal(SEND_NOW);

/**
 * Delivers one message to its endpoint: makes attempts until one succeeds or none follows. The database holds the attempts and
 * when the next one is due, so a workflow that was lost starts again where it was. The signal ends the wait for the next attempt.
 *
 * @startedBy the relay; *send again*, with a signal
 */
export async function webhook(input: WebhookInput): Promise<Pick<WebhookProgress, 'state' | 'attempts'>> {
  const fallback = new Fallback();
  let isHurried = false;
  setHandler(sendNow, () => {
    isHurried = true;
  });
  for (;;) {
    isHurried = false;
    const progress = await fallback.run(
      SEND_MESSAGE,
      () => briefly.sendMessage(input.messageId),
      () => untilDone.sendMessage(input.messageId),
    );
    fallback.report(messageDetails(progress));
    const { state, attempts, waitMs } = progress;
    if (state === 'delivered' || state === 'failed') {
      // A person may have asked for another attempt while this one was made.
      if (!isHurried) return { state, attempts };
    } else {
      await condition(() => isHurried, waitMs);
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof webhook>(input);
  }
}
