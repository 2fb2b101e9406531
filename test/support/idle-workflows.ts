import type { WorkflowStarter } from '../../src/commands/deps.ts';

/** Starts no workflow. A test replaces what it needs. */
export const IDLE_WORKFLOWS: WorkflowStarter = {
  awaitDelivery: async () => null,
  startHolds: () => {},
  healBinding: () => {},
  settlePayout: async () => {},
  startPayoutRun: () => {},
  sendWebhookNow: () => {},
};
