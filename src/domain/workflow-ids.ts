/** Workflow ids. Each comes from a business key, so that a second start of the same work finds the first one. */
export const workflowIds = {
  delivery: (deliveryId: string) => `delivery:${deliveryId}`,
  hold: (commissionId: string) => `hold:${commissionId}`,
  payout: (affiliateId: string) => `payout:${affiliateId}`,
  heal: (bindingId: string) => `heal:${bindingId}`,
  reprocess: (reprocessRunId: string) => `reprocess:${reprocessRunId}`,
  /** One workflow per task queue evaluates all payments that wait for a rate. */
  convert: (taskQueue: string) => `convert:${taskQueue}`,
} as const;
