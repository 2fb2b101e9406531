import { ActivityCancellationType } from '@temporalio/workflow';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/** A fast path: one local activity, tried twice. Of a delivery, both attempts end before the response to its webhook is due. */
export const FAST_PATH: LocalActivityOptions = {
  startToCloseTimeout: '1500ms',
  scheduleToCloseTimeout: '2s',
  retry: { maximumAttempts: 2, initialInterval: '50ms' },
};

/** The fast path of an export: the settlement in one local activity, which may take as long as its caller waits. */
export const SETTLED_FAST: LocalActivityOptions = {
  startToCloseTimeout: '20s',
  scheduleToCloseTimeout: '25s',
  retry: { maximumAttempts: 2, initialInterval: '50ms' },
};

/** A question to the worker's own process, whose answer may be missing. */
export const ASKED_ONCE: LocalActivityOptions = {
  startToCloseTimeout: '2s',
  retry: { maximumAttempts: 1 },
};

/**
 * A cancelled workflow ends after its activity, and that ends within seconds: workers send heartbeats, whose answer tells
 * of the cancellation. A worker that died is noticed by their absence.
 */
const CANCELLED_IN_SECONDS: ActivityOptions = {
  heartbeatTimeout: '10s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
};

/** The first attempts at work of the background. When they fail, the work is marked as stuck and retried until done. */
export const FIRST_ATTEMPTS: ActivityOptions = {
  ...CANCELLED_IN_SECONDS,
  startToCloseTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumAttempts: 3 },
};

/** Work that must succeed eventually: retries without limit, at most a minute apart, each attempt visible in the UI. */
export const UNTIL_DONE: ActivityOptions = {
  ...CANCELLED_IN_SECONDS,
  startToCloseTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '1m' },
};

/** The same where somebody waits for the result: an outage that has ended delays it by at most five seconds. */
export const UNTIL_DONE_SOON: ActivityOptions = {
  ...UNTIL_DONE,
  retry: { ...UNTIL_DONE.retry, maximumInterval: '5s' },
};

/** Work that the next run of its Schedule does if it fails: five attempts within a quarter of an hour, 10 s, 40 s, 3 min and 11 min apart. */
export const UNTIL_NEXT_RUN: ActivityOptions = {
  ...CANCELLED_IN_SECONDS,
  startToCloseTimeout: '1m',
  retry: { initialInterval: '10s', backoffCoefficient: 4, maximumInterval: '15m', maximumAttempts: 5 },
};

/** The same for a Schedule that runs every minute. */
export const UNTIL_NEXT_MINUTE: ActivityOptions = {
  ...CANCELLED_IN_SECONDS,
  startToCloseTimeout: '1m',
  retry: { maximumAttempts: 3, initialInterval: '1s' },
};
