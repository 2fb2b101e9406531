import { ApplicationFailure } from '@temporalio/activity';
import { loggedError } from '../src/config/logger.ts';

/**
 * Returns the failure that Temporal may store in a history: without the values that a database quotes in its messages.
 * An `ApplicationFailure` is returned as it is.
 */
function asFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const { type, message, code } = loggedError(error);
  return ApplicationFailure.create({ type: code === undefined ? type : `${type} ${code}`, message });
}

/** Errors whose messages this service writes. Those of the runtime and the database quote the values they reject. */
const OWN_ERRORS = new Set([
  'Error',
  'ApplicationFailure',
  'DatabaseUnavailable',
  'ImpossibleResult',
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

/** Wraps activities so that they fail only with messages that a history may contain. */
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
