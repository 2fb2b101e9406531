import { proxyActivities, proxyLocalActivities, setCurrentDetails } from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';
import type { HoldInput } from '../src/domain/workflow-contracts.ts';

const fast = proxyLocalActivities<LedgerActivities>(FAST_PATH);
const reliable = proxyActivities<LedgerActivities>(UNTIL_DONE);

/**
 * The hold timer of one commission. Temporal holds its first workflow task back until the commission is due (`startDelay` in
 * temporal/background.ts), which the UI shows as a delayed start; a timer in here would cost a second task. Then it matures the
 * commission, if its `due_at` (src/domain/hold.ts) says so. The sweep matures the commissions of lost timers.
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
