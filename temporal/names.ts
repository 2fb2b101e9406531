/** Returns the task queue of the work that someone waits for in an installation: deliveries and payouts. */
export function awaitedQueue(installationId: string): string {
  return `tributary-${installationId}`;
}

/** Returns the task queue of messages to endpoints, which belongs to a task queue of awaited work. */
export function messageQueue(taskQueue: string): string {
  return `${taskQueue}-webhooks`;
}

/** Returns the task queue of background work that belongs to a task queue of awaited work. */
export function backgroundQueue(taskQueue: string): string {
  return `${taskQueue}-background`;
}
