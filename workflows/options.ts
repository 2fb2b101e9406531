import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/** The happy path of a delivery: all six steps in one go, tried twice inside the answer's budget. */
export const IN_ONE_GO: LocalActivityOptions = {
  startToCloseTimeout: '1500ms',
  scheduleToCloseTimeout: '2s',
  retry: { maximumAttempts: 2, initialInterval: '50ms' },
};

/** A step that has to happen some day: endless retry, at most a minute apart, each try visible in the UI. */
export const UNTIL_DONE: ActivityOptions = {
  startToCloseTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '1m' },
};

/** What may fail today: five tries within a quarter of an hour, 10 s, 40 s, 3 min and 11 min apart. */
export const A_FEW_TIMES: ActivityOptions = {
  startToCloseTimeout: '1m',
  retry: { initialInterval: '10s', backoffCoefficient: 4, maximumInterval: '15m', maximumAttempts: 5 },
};
