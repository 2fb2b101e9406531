import { proxyActivities } from '@temporalio/workflow';
import type { RatesActivities } from '../activities/rates.ts';
import { UNTIL_DONE } from './options.ts';
import type { ConvertPage, ConvertResult } from '../src/domain/workflow-contracts.ts';

const { convertPage } = proxyActivities<RatesActivities>(UNTIL_DONE);

/**
 * Evaluates, page by page, the payments whose missing exchange rate has arrived, and those that an alias has shown to
 * be attributed twice. The relay starts it.
 */
export async function convert(): Promise<ConvertResult> {
  let after: string | null = null;
  let evaluated = 0;
  let failed = 0;
  do {
    const page: ConvertPage = await convertPage(after);
    after = page.next;
    evaluated += page.evaluated;
    failed += page.failed;
  } while (after !== null);
  return { evaluated, failed };
}
