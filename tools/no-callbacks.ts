import type { ActivityDeps } from '../activities/index.ts';

/** Callbacks of the activities that do nothing, for tests and benchmarks that run activities without Temporal. */
export const NO_CALLBACKS = {
  onOutcome: () => {},
  onCommissions: () => {},
  onSettled: () => {},
  onBindings: () => {},
  canMark: async () => false,
  settlePayout: async () => {},
  deleteHistory: async () => 'absent',
} satisfies Partial<ActivityDeps>;
