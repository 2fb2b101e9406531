import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { CANCELLED_IN_SECONDS } from './options.ts';

const { sweepPage } = proxyActivities<LedgerActivities>({
  ...CANCELLED_IN_SECONDS,
  startToCloseTimeout: '1m',
  retry: { maximumAttempts: 3, initialInterval: '1s' },
});

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
