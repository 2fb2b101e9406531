import { proxyActivities, proxyLocalActivities, setCurrentDetails } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import type { HoldInput } from '../src/domain/workflow-contracts.ts';

const fast = proxyLocalActivities<LedgerActivities>(FAST_PATH);
const reliable = proxyActivities<LedgerActivities>(UNTIL_DONE);

/**
 * Matures one commission, as a rule in its first workflow task. It is started with a delay that ends at the
 * commission's due date. The sweep matures the commissions of lost timers.
 */
export async function hold({ commissionId }: HoldInput): Promise<'matured' | 'unchanged'> {
  const result = await fast
    .matureCommission(commissionId)
    .catch(async () => await reliable.matureCommission(commissionId));
  setCurrentDetails(
    result === 'matured'
      ? `The commission ${commissionId} was due and is matured: the next export pays it.`
      : `The commission ${commissionId} needed no change.`,
  );
  return result;
}
