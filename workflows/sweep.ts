import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { MatureActivities } from '../activities/mature.ts';
import { UNTIL_NEXT_MINUTE } from './options.ts';

const { sweepPage } = proxyActivities<MatureActivities>(UNTIL_NEXT_MINUTE);

/**
 * Matures overdue commissions page by page until none is left: those that are due soon after they are written, and
 * those whose hold timer was lost.
 *
 * @startedBy its Schedule, every minute; a second after commissions were written that are due already
 */
export async function sweep(sweptBefore = 0): Promise<{ matured: number }> {
  let swept = sweptBefore;
  for (;;) {
    const { matured, more } = await sweepPage();
    swept += matured;
    setCurrentDetails(`Commissions that were due and are matured: ${swept}.`);
    if (!more) return { matured: swept };
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof sweep>(swept);
  }
}
