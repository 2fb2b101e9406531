import * as z from 'zod';

/** Optional: refuses to pay when the net is another one than the caller saw. */
export const payoutExportBody = z.strictObject({
  expectedTotalCents: z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
});

/** `Idempotency-Key`: 1 to 255 printable ASCII characters. */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);
