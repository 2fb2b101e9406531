import type { DeliveryOutcome, DeliveryStep } from '../src/domain/delivery.ts';

/** The steps of all workflows that can be stuck. */
export type Step =
  | DeliveryStep
  | 'settlePayoutRequest'
  | 'healPage'
  | 'convertPage'
  | 'reprocessPage'
  | 'erasePage';

/** What each step does, as the end of a sentence. */
const STEP_WORDS: Readonly<Record<Step, string>> = {
  verify: 'check the signature of the webhook again',
  storeRaw: 'read the stored body of the webhook',
  normalize: 'store what the webhook reports',
  dedupe: 'compare the event with earlier deliveries',
  attribute: 'find the affiliate of the purchase',
  writeCommission: 'book the commission',
  settlePayoutRequest: 'settle a request for an export',
  healPage: "evaluate the user's earlier payments",
  convertPage: 'evaluate payments that waited',
  reprocessPage: 'reprocess stored deliveries',
  erasePage: 'search the stored webhooks for an erased person',
};

/*
 * The current details of workflows, in plain words and Markdown. The UI asks the workflow for them, so they add nothing to
 * its history and need no care in a replay.
 */

/** Describes a workflow whose step fails, and what its reader has to do. The UI shows about six lines. */
export function stuckDetails(step: Step, cause: string): string {
  return [
    `**Stuck: the service can't ${STEP_WORDS[step]}** (step \`${step}\`): ${cause}.`,
    'It tries again until it succeeds. Remove the cause: nothing else has to be done, and nothing is lost. ' +
      '*Pending Activities* has the attempts and the last failure.',
  ].join('\n\n');
}

/** Describes a workflow whose step failed and then succeeded. */
export function healedDetails(step: Step, cause: string): string {
  return `**Healed.** At first the service could not ${STEP_WORDS[step]} (step \`${step}\`): ${cause}. A later attempt succeeded.`;
}

/** Describes how a delivery ended. */
export function outcomeDetails(outcome: DeliveryOutcome): string {
  if (outcome.status === 'duplicate')
    return 'An earlier delivery of the same event was processed. This one changed nothing.';
  const { eventId, commissionId } = outcome;
  return commissionId === null
    ? `Processed. No commission was booked for the event ${eventId}; \`GET /apps/:appId/events/${eventId}\` says why.`
    : `Processed. The commission ${commissionId} was booked for the event ${eventId}.`;
}
