/** The task queue of the work that someone waits for: deliveries and payouts. */
export const TASK_QUEUE = 'tributary';

/** Returns the task queue of background work that belongs to a task queue of awaited work. */
export function backgroundQueue(taskQueue: string): string {
  return `${taskQueue}-background`;
}
