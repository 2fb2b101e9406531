import * as z from 'zod';
import { textLike } from './common.ts';

export const health = z.object({ status: z.literal('ok') });

export const readiness = z.object({
  status: z.enum(['ok', 'degraded']),
  checks: z.array(
    z.object({
      name: textLike('database'),
      ok: z.boolean(),
      detail: textLike('Temporal: not connected').nullable(),
    }),
  ),
});
