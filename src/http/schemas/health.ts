import * as z from 'zod';

export const health = z.object({ status: z.literal('ok') });

export const readiness = z.object({
  status: z.enum(['ok', 'degraded']),
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string().nullable() })),
});
