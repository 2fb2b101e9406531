import { ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { ActivityFailure } from '@temporalio/workflow';
import type { RatesActivities } from '../activities/rates.ts';
import { A_FEW_TIMES } from './options.ts';
import type { RatesResult } from '../src/domain/workflow-contracts.ts';

const { fetchRates } = proxyActivities<RatesActivities>(A_FEW_TIMES);

/**
 * Fetches the latest reference rates. A Schedule runs it daily. When they can't be had after a few tries, it fails with
 * one line that says why; the next day's run tries again, and the rates of up to seven days before serve meanwhile.
 */
export async function rates(): Promise<RatesResult> {
  try {
    return await fetchRates();
  } catch (error) {
    const { cause, message } = error as ActivityFailure;
    throw ApplicationFailure.nonRetryable(
      `No exchange rates today: ${cause?.message ?? message}`,
      'NoExchangeRates',
    );
  }
}
