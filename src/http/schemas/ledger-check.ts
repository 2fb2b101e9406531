import * as z from 'zod';
import { count, epochMs, exampleId, textLike } from './common.ts';

export const ledgerCheck = z.object({
  ok: z.boolean().describe('true when no check found anything'),
  checkedAt: epochMs,
  checks: z.array(
    z.object({
      name: textLike('paid_in_one_payout', 'stable, snake case'),
      ok: z.boolean(),
      description: textLike('Each paid commission is in exactly one payout.', 'the rule, in one sentence'),
      violations: count.describe('rows that break the rule'),
      examples: z
        .array(textLike(`${exampleId('commission')} is in no payout`))
        .max(20)
        .describe('each begins with the id of a row'),
    }),
  ),
});
