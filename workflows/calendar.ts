import {
  ApplicationFailure,
  continueAsNew,
  isCancellation,
  patched,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { CalendarActivities, CalendarPage } from '../activities/calendar.ts';
import { causeOf } from './details.ts';
import { UNTIL_NEXT_MINUTE } from './options.ts';

const activities = proxyActivities<CalendarActivities>(UNTIL_NEXT_MINUTE);

/** What is done, in this order. */
const STEPS = ['draftScheduledRuns', 'writeWeeklyReports'] as const;

/** What a workflow did. */
export interface CalendarResult {
  readonly drafts: number;
  readonly mails: number;
  /** Apps of which a run could not be drafted, or a report could not be written. The next run tries them again. */
  readonly failed: number;
}

/** Where a workflow is that goes on in a new run, and what it did so far. An earlier version states no failures. */
export interface CalendarProgress extends Omit<CalendarResult, 'failed'> {
  readonly step: number;
  readonly after: string;
  readonly failed?: number;
  /** Why the first step that failed did. Null if none did. */
  readonly problem?: string | null;
}

/**
 * Does what is due at a time of the calendar, app by app: drafts the payout runs of schedules and writes the weekly reports. What was done
 * stands in the database, so a run that is missed or repeated does nothing wrong. A step that fails does not stop the next one.
 *
 * @startedBy its Schedule, every five minutes
 */
export async function calendar(before?: CalendarProgress): Promise<CalendarResult> {
  let { step, after, drafts, mails } = before ?? { step: 0, after: '', drafts: 0, mails: 0 };
  let { failed = 0, problem = null } = before ?? {};
  for (;;) {
    const name = STEPS[step];
    if (name === undefined) {
      if (problem !== null) throw ApplicationFailure.nonRetryable(problem, 'CalendarIncomplete');
      return { drafts, mails, failed };
    }
    let next: string | null = null;
    try {
      const page: CalendarPage = await activities[name](after);
      if (name === 'draftScheduledRuns') drafts += page.count;
      else mails += page.count;
      failed += page.failed ?? 0;
      next = page.next;
    } catch (error) {
      // The branch of a run that an earlier version has ended here.
      if (isCancellation(error) || !patched('independent-steps')) throw error;
      problem ??= `${name}: ${causeOf(error)}`;
    }
    setCurrentDetails(
      `Payout runs that were drafted: ${drafts}, mails with reports: ${mails}, apps that failed: ${failed}.`,
    );
    if (next === null) step += 1;
    after = next ?? '';
    if (workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof calendar>({ step, after, drafts, mails, failed, problem });
  }
}
