import * as z from 'zod';
import type { Existing } from '../db/existing.ts';
import type { IdKind } from '../domain/ids.ts';
import { idOf, textField } from './fields.ts';

/** The body of a bulk call. */
export function bulkOf<T extends z.ZodType>(row: T) {
  return z.strictObject({ rows: z.array(row).min(1).max(100).describe('The rows to create, at most 100.') });
}

const rowIndex = z
  .int()
  .min(0)
  .meta({ description: 'The index of the row in `rows`.', examples: [7] });

/** The response of a bulk call. Each row is in one of the three lists. */
export function bulkResponse<T extends z.ZodType, C extends string>(
  item: T,
  kind: IdKind,
  codes: readonly C[],
) {
  const response = z.object({
    created: z.array(item).describe('What was created, in the order of the rows.'),
    existing: z
      .array(
        z.object({
          index: rowIndex,
          id: idOf(kind, `The id of the ${kind} that has it.`),
        }),
      )
      .meta({ description: 'Rows whose `externalId` exists. Nothing was created or changed for them.' }),
    failed: z
      .array(
        z.object({
          index: rowIndex,
          code: (codes.length === 0 ? z.never() : z.enum(codes)).describe('Why it failed. Stable.'),
          message: textField('The slug is taken in this app.', 'What to change. A sentence for people.'),
        }),
      )
      .meta({
        description: 'Rows that the state of the app does not allow.',
        ...(codes.length === 0 ? { examples: [[]] } : {}),
      }),
  });
  const id = `Created${kind[0]?.toUpperCase()}${kind.slice(1)}s`;
  return response.meta({ id, description: 'What became of each row.' });
}

/**
 * Returns the response of a bulk call: the created rows, the ids of rows that exist, and each refused row with its index
 * and reason.
 */
export function presentBulk<Created extends { readonly id: string }, Refusal extends string, Row>(
  outcomes: readonly (Created | Existing<string> | Refusal)[],
  present: (created: Created) => Row,
  messages: Readonly<Record<Refusal, string>>,
): {
  created: Row[];
  existing: { index: number; id: string }[];
  failed: { index: number; code: Refusal; message: string }[];
} {
  const created: Row[] = [];
  const existing: { index: number; id: string }[] = [];
  const failed: { index: number; code: Refusal; message: string }[] = [];
  outcomes.forEach((outcome, index) => {
    if (typeof outcome === 'string') failed.push({ index, code: outcome, message: messages[outcome] });
    else if ('existingId' in outcome) existing.push({ index, id: outcome.existingId });
    else created.push(present(outcome));
  });
  return { created, existing, failed };
}
