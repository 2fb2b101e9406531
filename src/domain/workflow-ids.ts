/** Ids of workflows: the same thing always has the same one, so doing it twice is doing it once. */
export const workflowIds = {
  delivery: (deliveryId: string) => `delivery:${deliveryId}`,
  hold: (commissionId: string) => `hold:${commissionId}`,
  payout: (affiliateId: string) => `payout:${affiliateId}`,
  heal: (bindingId: string) => `heal:${bindingId}`,
  reprocess: (reprocessRunId: string) => `reprocess:${reprocessRunId}`,
  /** One at a time for everything that waits. */
  convert: (taskQueue: string) => `convert:${taskQueue}`,
} as const;
