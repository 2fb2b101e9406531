/**
 * Workflow ids. Each is derived from a business key, so that a second start of the same work finds the first workflow.
 */
export const workflowIds = {
  delivery: (deliveryId: string) => `delivery:${deliveryId}`,
  hold: (commissionId: string) => `hold:${commissionId}`,
  payout: (affiliateId: string) => `payout:${affiliateId}`,
  heal: (bindingId: string) => `heal:${bindingId}`,
  reprocess: (reprocessRunId: string) => `reprocess:${reprocessRunId}`,
  erase: (erasureId: string) => `erase:${erasureId}`,
  webhook: (messageId: string) => `webhook:${messageId}`,
  /** A Schedule of an installation. Its runs have this id and their time. */
  schedule: (workflow: string, taskQueue: string) => `${workflow}:${taskQueue}`,
  /** A sweep between those of the Schedule. */
  sweepNow: (taskQueue: string) => `sweep-now:${taskQueue}`,
  /** One workflow per task queue evaluates all payments without an exchange rate. */
  convert: (taskQueue: string) => `convert:${taskQueue}`,
} as const;
