/** Task queue, workflow ids and schedule: the same thing always has the same id, so doing it twice is doing it once. */
export const TASK_QUEUE = 'tributary';
export const SWEEP_SCHEDULE_ID = 'sweep';

export const workflowIds = {
  delivery: (deliveryId: string) => `delivery:${deliveryId}`,
  hold: (commissionId: string) => `hold:${commissionId}`,
  payout: (affiliateId: string) => `payout:${affiliateId}`,
  heal: (bindingId: string) => `heal:${bindingId}`,
} as const;
