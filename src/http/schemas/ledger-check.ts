import * as z from 'zod';
import { count, epochMs } from './common.ts';

export const ledgerCheck = z.object({
  ok: z.boolean().describe('true when no check found anything'),
  checkedAt: epochMs,
  checks: z.array(
    z.object({
      name: z.string().describe('stable, snake case'),
      ok: z.boolean(),
      description: z.string().describe('the rule, in one sentence'),
      violations: count.describe('rows that break the rule'),
      examples: z.array(z.string()).max(20).describe('each begins with the id of a row'),
    }),
  ),
});
