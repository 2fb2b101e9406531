import { proxyActivities } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { UNTIL_DONE } from './options.ts';
import type { HoldInput } from '../src/domain/workflow-contracts.ts';

const { matureCommission } = proxyActivities<LedgerActivities>(UNTIL_DONE);

/**
 * Matures one commission. It is started with a delay that ends at the commission's due date. The sweep matures the
 * commissions of lost timers.
 */
export async function hold({ commissionId }: HoldInput): Promise<'matured' | 'unchanged'> {
  return await matureCommission(commissionId);
}
