/** The names under which answers about payouts are kept. */
export const PAYOUT_KEYS = {
  preview: (appId: string) => ['payout-preview', appId],
  notPayable: (appId: string) => ['not-payable', appId],
  blocks: (appId: string) => ['payout-blocks', appId],
  list: (appId: string, affiliateId?: string) => ['payouts', appId, affiliateId ?? ''],
  one: (appId: string, payoutId: string) => ['payout', appId, payoutId],
} as const;
