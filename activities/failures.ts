import { ApplicationFailure, asyncLocalStorage, CancelledFailure } from '@temporalio/activity';
import { loggedError } from '../src/config/logger.ts';
import { DatabaseUnavailable, InvalidResult } from '../src/db/errors.ts';

const HOUR_MS = 3_600_000;
/** How long a step waits for its next attempt after an hour of failures: each attempt costs, and a person is needed. */
const RARE_MS = { least: 10 * 60_000, most: 15 * 60_000 };

/**
 * Returns the wait before the next attempt of an activity that has failed for an hour; undefined before that. Both times are of the
 * Temporal server: the clock of the worker may be wrong.
 */
function rareRetryMs(): number | undefined {
  const info = asyncLocalStorage.getStore()?.info;
  if (info === undefined || info.isLocal) return undefined;
  if (info.currentAttemptScheduledTimestampMs - info.scheduledTimestampMs < HOUR_MS) return undefined;
  return RARE_MS.least + Math.random() * (RARE_MS.most - RARE_MS.least);
}

/**
 * Returns the failure that Temporal may store in a history: without the values that a database quotes in its messages.
 * An `ApplicationFailure` and a cancellation are returned as they are.
 */
function asFailure(error: unknown): unknown {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  const { type, message, code } = loggedError(error);
  const nextRetryDelay = rareRetryMs();
  return ApplicationFailure.create({
    type: code === undefined ? type : `${type} ${code}`,
    message,
    ...(nextRetryDelay === undefined ? {} : { nextRetryDelay }),
  });
}

/** Errors whose messages this service writes. Those of the runtime and the database quote the values they reject. */
const OWN_ERRORS = new Set([
  'Error',
  'ApplicationFailure',
  DatabaseUnavailable.name,
  InvalidResult.name,
  'SecretUnreadable',
  'UnknownProvider',
]);

/**
 * Returns why a step failed, for the founder whose delivery it is: without parts of the body or secrets; of a database
 * error only its code and the name of the constraint.
 */
export function causeForFounder(error: unknown): string {
  const { type, message, code, constraint } = loggedError(error);
  if (code !== undefined) return [type, code, constraint].filter((part) => part !== undefined).join(' ');
  return OWN_ERRORS.has(type) ? message : type;
}

/**
 * Wraps activities so that they fail only with messages that a history may contain, and are retried rarely after an hour
 * of failures.
 */
export function withSafeFailures<A extends object>(activities: A): A {
  const wrapped = Object.entries(activities).map(
    ([name, activity]: [string, (...args: unknown[]) => Promise<unknown>]) => [
      name,
      async (...args: unknown[]) => {
        try {
          return await activity(...args);
        } catch (error) {
          throw asFailure(error);
        }
      },
    ],
  );
  return Object.fromEntries(wrapped) as A;
}
