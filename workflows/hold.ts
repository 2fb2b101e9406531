import { proxyActivities } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { UNTIL_DONE } from './options.ts';
import type { HoldInput } from '../src/domain/workflow-contracts.ts';

const { matureCommission } = proxyActivities<LedgerActivities>(UNTIL_DONE);

/**
 * The hold timer of one commission. It is started with a delay that ends at the commission's due date, so it has
 * nothing to do but to mature it. A sweep catches what a lost timer leaves behind.
 */
export async function hold({ commissionId }: HoldInput): Promise<'matured' | 'unchanged'> {
  return await matureCommission(commissionId);
}
