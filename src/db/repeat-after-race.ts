import { violatedConstraint } from './sql.ts';

const ATTEMPTS = 10;

/**
 * Runs a statement again when another one that ran at the same time took the place first: the next look sees what it
 * wrote. `constraint` is the one that such a loser runs into; any other error is thrown.
 */
export async function repeatAfterRace<T>(constraint: string, statement: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await statement();
    } catch (error) {
      if (attempt === ATTEMPTS || violatedConstraint(error) !== constraint) throw error;
    }
  }
}

/**
 * Runs `look` until it answers. It answers undefined when another statement has just written what it looks for, or has
 * just taken what it wanted; `attempts` is one more than what can be taken.
 */
export async function retryUntilVisible<T>(
  look: () => Promise<T | undefined>,
  attempts = ATTEMPTS,
): Promise<T> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error('a row that others had written stayed out of sight');
}
