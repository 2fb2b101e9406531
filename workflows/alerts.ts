import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { AlertActivities, AlertPage } from '../activities/alerts.ts';
import { UNTIL_NEXT_MINUTE } from './options.ts';

const { evaluateAlerts } = proxyActivities<AlertActivities>(UNTIL_NEXT_MINUTE);

/** Where an evaluation is that goes on in a new run, and what it did so far. */
export interface AlertProgress {
  readonly after: string;
  readonly opened: number;
  readonly closed: number;
}

/**
 * Opens and closes the alerts of all apps, page by page.
 *
 * @startedBy its Schedule, every five minutes
 */
export async function alerts(before?: AlertProgress): Promise<{ opened: number; closed: number }> {
  let { after, opened, closed } = before ?? { after: '', opened: 0, closed: 0 };
  for (;;) {
    const page: AlertPage = await evaluateAlerts(after);
    opened += page.opened;
    closed += page.closed;
    setCurrentDetails(`Alerts that were opened: ${opened}, closed: ${closed}.`);
    if (page.next === null) return { opened, closed };
    after = page.next;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof alerts>({ after, opened, closed });
  }
}
