/**
 * Returns a workflow's id: its name and the business key that it works for, so that a second start of the same work finds the first
 * workflow. One that works for the whole installation has the task queue as its key, and so has a Schedule. Stored in rows of the
 * Temporal server: an id never changes.
 */
export function workflowIdOf(workflow: string, key: string): string {
  return `${workflow}:${key}`;
}
