import type { ActivityFailure } from '@temporalio/workflow';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { EmailProgress } from '../activities/email.ts';
import type { WebhookProgress } from '../activities/webhook.ts';

/** A step of a workflow that can be stuck. */
export interface Step {
  /** The activity's name, which the search attribute shows. */
  readonly name: string;
  /** What it does, as the end of a sentence. */
  readonly does: string;
}

/** Returns why an activity failed, without a full stop. */
export function causeOf(error: unknown): string {
  const failure = error as Partial<ActivityFailure>;
  return (failure.cause?.message ?? failure.message ?? 'unknown').replace(/\.$/, '');
}

/*
 * The current details of workflows, in plain words and Markdown. The UI asks the workflow for them, so they add nothing to
 * its history and need no care in a replay.
 */

/** Describes a workflow whose step fails, and what its reader has to do. The UI shows about six lines. */
export function stuckDetails({ name, does }: Step, cause: string): string {
  return [
    `**Stuck: the service can't ${does}** (step \`${name}\`): ${cause}.`,
    'It tries again until it succeeds. Remove the cause: nothing else has to be done, and nothing is lost. ' +
      '*Pending Activities* has the attempts and the last failure.',
  ].join('\n\n');
}

/** Describes a workflow whose step failed and then succeeded. */
export function healedDetails({ name, does }: Step, cause: string): string {
  return `**Healed.** At first the service could not ${does} (step \`${name}\`): ${cause}. A later attempt succeeded.`;
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

/** Describes how far a message to an endpoint has come. */
export function messageDetails({ state, attempts, problem, waitMs }: WebhookProgress): string {
  const failed = problem === null ? '' : ` ${problem}`;
  switch (state) {
    case 'delivered':
      return `Delivered after ${attempts} attempts.`;
    case 'failed':
      return `Failed after ${attempts} attempts, and none follows.${failed}`;
    case 'retry':
      return `Attempt ${attempts} failed. The next one follows in ${Math.ceil(waitMs / 1000)} s.${failed}`;
    case 'later':
      return `${attempts} attempts so far. The next one is due in ${Math.ceil(waitMs / 1000)} s.${failed}`;
  }
}

/** Describes how far a mail has come. */
export function emailDetails({ state, attempts, problem, waitMs }: EmailProgress): string {
  const failed = problem === null ? '' : ` ${problem}`;
  const next = `${Math.ceil(waitMs / 1000)} s`;
  switch (state) {
    case 'sent':
      return `The mail server has accepted the mail after ${attempts} attempts.`;
    case 'skipped':
      return `Nothing was sent.${failed}`;
    case 'failed':
      return `Failed after ${attempts} attempts, and none follows.${failed}`;
    case 'retry':
      return `Attempt ${attempts} failed. The next one follows in ${next}.${failed}`;
    case 'later':
      return `${attempts} attempts so far. The next one is due in ${next}.${failed}`;
  }
}
