/** The names under which answers about payouts are kept. */
export const PAYOUT_KEYS = {
  preview: (appId: string) => ['payout-preview', appId],
  notPayable: (appId: string) => ['not-payable', appId],
  blocks: (appId: string) => ['payout-blocks', appId],
  list: (appId: string, affiliateId?: string) => ['payouts', appId, affiliateId ?? ''],
  one: (appId: string, payoutId: string) => ['payout', appId, payoutId],
  returned: (appId: string) => ['returned-payouts', appId],
  runs: (appId: string) => ['payout-runs', appId],
  latestRun: (appId: string) => ['latest-payout-run', appId],
  run: (appId: string, runId: string) => ['payout-run', appId, runId],
  runItems: (appId: string, runId: string) => ['payout-run-items', appId, runId],
  runUnpaid: (appId: string, runId: string) => ['payout-run-unpaid', appId, runId],
  runFiles: (appId: string, runId: string) => ['payout-run-files', appId, runId],
  runExclusions: (appId: string, runId: string) => ['payout-run-exclusions', appId, runId],
} as const;
