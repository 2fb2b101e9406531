import { continueAsNew, proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { EmailActivities, EmailProgress } from '../activities/email.ts';
import { emailDetails } from './details.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';

export interface EmailInput {
  readonly emailId: string;
}

const briefly = proxyActivities<EmailActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<EmailActivities>(UNTIL_DONE);

const SEND_EMAIL = { name: 'sendEmail', does: 'make an attempt at a mail' };

/**
 * Sends one mail: makes attempts until the mail server accepts it or none follows. The database holds the attempts and when the next
 * one is due, so a workflow that was lost starts again where it was.
 *
 * @startedBy the relay
 */
export async function email(input: EmailInput): Promise<Pick<EmailProgress, 'state' | 'attempts'>> {
  const fallback = new Fallback();
  for (;;) {
    const progress = await fallback.run(
      SEND_EMAIL,
      () => briefly.sendEmail(input.emailId),
      () => untilDone.sendEmail(input.emailId),
    );
    fallback.report(emailDetails(progress));
    const { state, attempts, waitMs } = progress;
    if (state !== 'retry' && state !== 'later') return { state, attempts };
    await sleep(waitMs);
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof email>(input);
  }
}
