import { ApplicationFailure } from '@temporalio/activity';
import { loggedError } from '../src/config/logger.ts';

/**
 * A failure as Temporal may keep it: what went wrong without the values that a database quotes in its messages. What is
 * a failure for Temporal already passes as it is.
 */
function asFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const { type, message, code } = loggedError(error);
  return ApplicationFailure.create({ type: code === undefined ? type : `${type} ${code}`, message });
}

/** Errors whose words are this service's own. The runtime's and the database's quote the values they stumbled over. */
const OWN_WORDS = new Set([
  'Error',
  'ApplicationFailure',
  'DatabaseUnavailable',
  'ImpossibleResult',
  'SecretUnreadable',
  'UnknownProvider',
]);

/**
 * Why a step failed, for the founder whose delivery it is: nothing of the body, no secret, and of the database no more
 * than its code and the name of the rule.
 */
export function causeForFounder(error: unknown): string {
  const { type, message, code, constraint } = loggedError(error);
  if (code !== undefined) return [type, code, constraint].filter((part) => part !== undefined).join(' ');
  return OWN_WORDS.has(type) ? message : type;
}

/** Makes every activity fail in words that may stand in a history. */
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
