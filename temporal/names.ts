/** Names at the Temporal server. Those of workflows are in `src/domain/workflow-ids.ts`, since the API shows them, too. */
export const TASK_QUEUE = 'tributary';
