/**
 * Workflow ids. Each is derived from a business key, so that a second start of the same work finds the first workflow.
 */
export const workflowIds = {
  delivery: (deliveryId: string) => `delivery:${deliveryId}`,
  hold: (commissionId: string) => `hold:${commissionId}`,
  payout: (affiliateId: string) => `payout:${affiliateId}`,
  heal: (bindingId: string) => `heal:${bindingId}`,
  reprocess: (reprocessRunId: string) => `reprocess:${reprocessRunId}`,
  /** One workflow per task queue evaluates all payments without an exchange rate. */
  convert: (taskQueue: string) => `convert:${taskQueue}`,
} as const;
