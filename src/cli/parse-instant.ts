import { InvalidArgumentError } from 'commander';
import { instantProblem } from '../domain/instants.ts';
import { parseInstant as parse } from '../config/parse-instant.ts';

/**
 * Parses an instant on the command line as queries of the API do. A date without a time is midnight UTC, and 0 is the
 * beginning. Returns epoch ms. Throws `InvalidArgumentError`.
 */
export function parseInstant(text: string): number {
  const at = parse(text);
  if (Number.isNaN(at)) {
    throw new InvalidArgumentError('Use 2026-01-31, 2026-01-31T12:00:00Z or epoch milliseconds.');
  }
  const problem = instantProblem(at, { now: Date.now(), takesZero: true });
  if (problem !== null) throw new InvalidArgumentError(problem);
  return at;
}
