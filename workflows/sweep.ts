import { proxyActivities } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';

const { sweepOverdue } = proxyActivities<LedgerActivities>({
  startToCloseTimeout: '1m',
  retry: { maximumAttempts: 3, initialInterval: '1s' },
});

/** Matures overdue commissions, including those whose hold timer was lost. A Schedule runs it every minute. */
export async function sweep(): Promise<{ matured: number }> {
  return { matured: await sweepOverdue() };
}
