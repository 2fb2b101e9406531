import { continueAsNew, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ConvertActivities, ConvertPage, ConvertResult } from '../activities/convert.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';

const briefly = proxyActivities<ConvertActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<ConvertActivities>(UNTIL_DONE);

const CONVERT_PAGE = { name: 'convertPage', does: 'evaluate payments that waited' };

const FIRST_PAGE: ConvertPage = { next: null, evaluated: 0, failed: 0 };

/**
 * Evaluates, page by page, the payments that are marked for another evaluation, and those whose missing exchange rate has
 * arrived. `before` has the counts of the pages before, and where the next one begins.
 *
 * @startedBy the relay
 */
export async function convert(before: ConvertPage = FIRST_PAGE): Promise<ConvertResult> {
  const fallback = new Fallback();
  let { next, evaluated, failed } = before;
  for (;;) {
    const after = next;
    const page: ConvertPage = await fallback.run(
      CONVERT_PAGE,
      () => briefly.convertPage(after),
      () => untilDone.convertPage(after),
    );
    next = page.next;
    evaluated += page.evaluated;
    failed += page.failed;
    fallback.report(
      `Payments that waited: ${evaluated} evaluated, ${failed} failed and stay for a later run.`,
    );
    if (next === null) return { evaluated, failed };
    if (workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof convert>({ next, evaluated, failed });
    }
  }
}
