import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Client, ScheduleOptions } from '@temporalio/client';

export type ScheduleId = 'sweep' | 'rates';

/** When each Schedule runs its workflow. Both have the same name. */
const SCHEDULES: Readonly<Record<ScheduleId, Pick<ScheduleOptions, 'spec' | 'policies' | 'state'>>> = {
  sweep: {
    spec: { intervals: [{ every: '1m' }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1m' },
  },
  /**
   * The European Central Bank publishes at about 16:00 local time, which is 14:00 or 15:00 UTC. The jitter spreads the
   * requests of many installations. A new Schedule also runs at once.
   */
  rates: {
    spec: { calendars: [{ hour: 16, minute: 5 }], timezone: 'UTC', jitter: '30m' },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 day' },
    state: { triggerImmediately: true },
  },
};

/** Creates the Schedules that are missing. Existing ones stay unchanged. */
export async function ensureSchedules(
  client: Client,
  taskQueue: string,
  ids: readonly ScheduleId[],
): Promise<void> {
  for (const scheduleId of ids) {
    try {
      await client.schedule.create({
        scheduleId,
        action: { type: 'startWorkflow', workflowType: scheduleId, taskQueue, args: [] },
        ...SCHEDULES[scheduleId],
      });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }
}
