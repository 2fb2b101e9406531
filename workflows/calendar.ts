import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { CalendarActivities, CalendarPage } from '../activities/calendar.ts';
import { UNTIL_NEXT_MINUTE } from './options.ts';

const activities = proxyActivities<CalendarActivities>(UNTIL_NEXT_MINUTE);

/** What is done, in this order. */
const STEPS = ['draftScheduledRuns', 'writeWeeklyReports'] as const;

/** Where a workflow is that goes on in a new run, and what it did so far. */
export interface CalendarProgress {
  readonly step: number;
  readonly after: string;
  readonly drafts: number;
  readonly mails: number;
}

/**
 * Does what is due at a time of the calendar, app by app: drafts the payout runs of schedules and writes the weekly reports. What was done
 * stands in the database, so a run that is missed or repeated does nothing wrong.
 *
 * @startedBy its Schedule, every five minutes
 */
export async function calendar(before?: CalendarProgress): Promise<{ drafts: number; mails: number }> {
  let { step, after, drafts, mails } = before ?? { step: 0, after: '', drafts: 0, mails: 0 };
  for (;;) {
    const name = STEPS[step];
    if (name === undefined) return { drafts, mails };
    const page: CalendarPage = await activities[name](after);
    if (name === 'draftScheduledRuns') drafts += page.count;
    else mails += page.count;
    setCurrentDetails(`Payout runs that were drafted: ${drafts}, mails with reports: ${mails}.`);
    if (page.next === null) step += 1;
    after = page.next ?? '';
    if (workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof calendar>({ step, after, drafts, mails });
  }
}
