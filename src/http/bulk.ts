import * as z from 'zod';

/** The body of a bulk call. */
export function bulkOf<T extends z.ZodType>(row: T) {
  return z.strictObject({ rows: z.array(row).min(1).max(100) });
}

/** The response of a bulk call. Each row is in one of the two lists. */
export function bulkResponse<T extends z.ZodType>(item: T, codes: readonly string[]) {
  return z.object({
    created: z.array(item),
    failed: z.array(
      z.object({
        index: z
          .int()
          .min(0)
          .meta({ description: 'The index of the row in `rows`.', examples: [3] }),
        code: codes.length === 0 ? z.never() : z.enum(codes),
        message: z.string().meta({ examples: ['The slug is taken in this app.'] }),
      }),
    ),
  });
}

/** Returns the response of a bulk call: the created rows, and each refused row with its index and reason. */
export function presentBulk<Created extends object, Refusal extends string, Row>(
  outcomes: readonly (Created | Refusal)[],
  present: (created: Created) => Row,
  messages: Readonly<Record<Refusal, string>>,
): { created: Row[]; failed: { index: number; code: Refusal; message: string }[] } {
  const created: Row[] = [];
  const failed: { index: number; code: Refusal; message: string }[] = [];
  outcomes.forEach((outcome, index) => {
    if (typeof outcome === 'string') failed.push({ index, code: outcome, message: messages[outcome] });
    else created.push(present(outcome));
  });
  return { created, failed };
}
