import type { Client } from '@temporalio/client';
import { backgroundQueue, messageQueue } from '../../temporal/names.ts';

/** `TASK_QUEUE_TYPE_ACTIVITY` of Temporal. */
const ACTIVITIES = 2;

/** Returns how many workers have asked the queues of an installation for activities within the last minutes. */
export async function countPollers(temporal: Client, taskQueue: string): Promise<number> {
  const queues = [taskQueue, backgroundQueue(taskQueue), messageQueue(taskQueue)];
  const counts = queues.map(async (name) => {
    const { pollers } = await temporal.workflowService.describeTaskQueue({
      namespace: 'default',
      taskQueue: { name },
      taskQueueType: ACTIVITIES,
    });
    return pollers.length;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}
