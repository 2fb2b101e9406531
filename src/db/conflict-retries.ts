import { violatedConstraint } from './errors.ts';

const ATTEMPTS = 10;

/**
 * Runs a statement again when a concurrent statement won the race for a unique place: the next attempt sees the row of
 * the winner. `constraints` are those that refuse the loser. Any other error is thrown. `attempts` is one more than the
 * number of races that one call can lose.
 */
export async function retryAfterConflict<T>(
  constraints: readonly string[],
  statement: () => Promise<T>,
  attempts = ATTEMPTS,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await statement();
    } catch (error) {
      if (attempt === attempts || !constraints.includes(violatedConstraint(error) ?? '')) throw error;
    }
  }
}

/**
 * Runs `find` until it returns a value. It returns undefined when another statement has just inserted the row that it
 * is looking for, or has just taken what it wanted. `attempts` is one more than the number of times that can happen.
 */
export async function retryUntilVisible<T>(
  find: () => Promise<T | undefined>,
  attempts = ATTEMPTS,
): Promise<T> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const found = await find();
    if (found !== undefined) return found;
  }
  throw new Error('a row that a concurrent statement inserted did not become visible');
}
