import { isInFuture } from '../domain/attribution.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, invalidField } from './errors.ts';

const RETRY_AFTER_SECONDS = 10;

/**
 * Refuses an instant that lies in the future. A process whose own clock is wrong, or that can't compare it with the
 * database's, can't know that: it answers 503, so that the caller sends the instant again, to a process with the right time.
 */
export async function refuseFuture(
  { readiness }: Pick<HttpDeps, 'readiness'>,
  field: string,
  at: number,
  now: number,
): Promise<void> {
  if (!isInFuture(at, now)) return;
  const clock = (await readiness()).find(({ name }) => name === 'clock');
  if (clock?.ok === true) throw invalidField(field, 'Must not be in the future.');
  throw new ApiError('unavailable', {
    detail: `The clock of this server ${clock === undefined ? 'could not be compared' : 'does not agree'} with the database's, so it can't check \`${field}\`.`,
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}
