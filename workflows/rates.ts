import { ApplicationFailure, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { RatesActivities, RatesResult } from '../activities/rates.ts';
import { UNTIL_NEXT_RUN } from './options.ts';

const { fetchRates } = proxyActivities<RatesActivities>(UNTIL_NEXT_RUN);

/**
 * Fetches the latest reference rates. After five failed attempts it fails with one line that
 * states the reason; the next day's run tries again, and the service uses rates that are up to seven days old meanwhile.
 *
 * @startedBy its Schedule, daily, and once when the Schedule is created
 */
export async function rates(): Promise<RatesResult> {
  try {
    return await fetchRates();
  } catch (error) {
    if (isCancellation(error)) throw error;
    const { cause, message } = error as ActivityFailure;
    throw ApplicationFailure.nonRetryable(
      `No exchange rates today: ${cause?.message ?? message}`,
      'NoExchangeRates',
    );
  }
}
