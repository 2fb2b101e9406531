import * as z from 'zod';

/** Optional: refuses to pay when the net is another one than the caller saw. */
export const payoutExportBody = z.strictObject({
  expectedTotalCents: z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
});
