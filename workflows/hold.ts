import { proxyActivities, proxyLocalActivities, setCurrentDetails } from '@temporalio/workflow';
import type { MatureActivities } from '../activities/mature.ts';
import { FAST_PATH, UNTIL_DONE } from './options.ts';

export interface HoldInput {
  readonly commissionId: string;
}

const fast = proxyLocalActivities<MatureActivities>(FAST_PATH);
const untilDone = proxyActivities<MatureActivities>(UNTIL_DONE);

/**
 * Matures one commission when it is due: its hold timer. Temporal holds its first workflow task back until then (`startDelay` in
 * temporal/background.ts), which the UI shows as a delayed start; a timer in here would cost a second task. The commission's `due_at`
 * (src/domain/due-date.ts) decides. The sweep matures the commissions of lost timers.
 *
 * @startedBy the process that wrote the commission
 */
export async function hold({ commissionId }: HoldInput): Promise<'matured' | 'unchanged'> {
  const result = await fast
    .matureCommission(commissionId)
    .catch(async () => await untilDone.matureCommission(commissionId));
  setCurrentDetails(
    result === 'matured'
      ? `The commission ${commissionId} was due and is matured: the next export pays it.`
      : `The commission ${commissionId} needed no change.`,
  );
  return result;
}
