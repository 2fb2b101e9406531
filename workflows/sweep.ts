import { proxyActivities } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';

const { sweepOverdue } = proxyActivities<LedgerActivities>({
  startToCloseTimeout: '1m',
  retry: { maximumAttempts: 3, initialInterval: '1s' },
});

/** Matures whatever is overdue, also where the hold timer was lost with a Temporal server. A Schedule runs it. */
export async function sweep(): Promise<{ matured: number }> {
  return { matured: await sweepOverdue() };
}
