/** The task queue of all workflows. */
export const TASK_QUEUE = 'tributary';
