import * as z from 'zod';
import { PAYOUT_FILE_METHODS } from '../../domain/payout-run.ts';
import { REPORT_OUTCOMES, REPORTED_STATES } from '../../domain/payout-report.ts';
import type { ReportedState } from '../../domain/payout-report.ts';
import { cents, count, epochMs, idOf, nameOfAffiliate, orNull, textField, textsLike } from '../fields.ts';
import { countOf, statedCount } from './payout-reports.ts';
import type { Assessment, OpenedReport } from './payout-reports.ts';
import { transferReference } from './payouts-views.ts';

/** Rows that an answer lists at most. */
export const LISTED = 1_000;

/** The longest report, characters: what a body has room for. */
const LONGEST_REPORT = 1_000_000;

const column = (example: string, description: string) =>
  z
    .string()
    .min(1)
    .max(200)
    .meta({ description, examples: [example] });
const word = z.string().max(200);

export const report = z.strictObject({
  csv: z
    .string()
    .min(1)
    .max(LONGEST_REPORT)
    .meta({
      description:
        'The report of the payment service, with its header line. Rows are found by the keys of the run’s files, in whatever column. A longer report can be sent in parts, each with the header line.',
      examples: ['Transaction ID,Status,Unique ID\n4BX,Completed,pit_01jz4w2vxq8m3c5t7e9f1g3h5k'],
    }),
  columns: z
    .strictObject({
      status: column('Status', 'The name of the column that says what became of the payment.'),
      reference: orNull(
        column('Transaction ID', 'The name of the column with the reference of the payment service.'),
        'Null: the report has none. Absent: it is looked for.',
      ).optional(),
    })
    .optional()
    .describe('Needed only if the columns are not found: see `columns` of the preview.'),
  meanings: z
    .record(word, z.enum(REPORTED_STATES))
    .refine((meanings) => Object.keys(meanings).length <= 100, 'Must have at most 100 words.')
    .optional()
    .meta({
      description: 'What words of the status column mean that are not known.',
      examples: [{ Ausgeführt: 'sent' }],
    }),
});

export const reportPreview = report.meta({
  id: 'PayoutReportPreview',
  description: 'A report of a payment service.',
});

export const newReport = report
  .extend({
    expected: z
      .strictObject({
        sentCount: z.int().min(0).max(100_000).describe('The `sentCount` of the preview.'),
        returnedCount: z.int().min(0).max(100_000).describe('The `returnedCount` of the preview.'),
      })
      .describe('What the preview says. If it is more by now, nothing is stated.'),
  })
  .meta({
    id: 'NewPayoutReport',
    description: 'A report of a payment service, and what it is expected to state.',
  });

export const runResults = z
  .object({
    header: textsLike('Transaction ID').describe('The columns of the report.'),
    columns: z
      .object({
        status: textField('Status', 'The column that says what became of a payment.'),
        reference: orNull(
          textField('Transaction ID', 'The column with the reference of the payment service.'),
          'Null if none has it.',
        ),
      })
      .describe('The columns that were read.'),
    sentCount: count('The number of payouts that are stated as sent.'),
    returnedCount: count('The number of payouts that are stated as returned.'),
    conflictCount: count(
      'The number of payouts of which the report contradicts itself, or what is stated. They are listed in `rows`, and somebody has to look at them. None is stated as returned; `sentCount` has those that are stated as sent.',
    ),
    unchangedCount: count(
      'The number of payouts of which that was stated before, or whose money a later run sends again.',
    ),
    pendingCount: count('The number of payouts that are neither sent nor returned yet.'),
    unknownCount: count(
      'The number of payouts with a word that is not known. Say what it means in `meanings`.',
    ),
    unmatchedCount: count('The number of rows that are not about a payout of this run.'),
    statuses: z
      .array(
        z.object({
          status: textField('Completed', 'A word of the report.'),
          meaning: z.enum(REPORTED_STATES).describe('What it means.'),
          count: count('The number of payouts with it.'),
        }),
      )
      .describe('The words of the report, at most 100.'),
    rows: z
      .array(
        z.object({
          itemId: idOf('payoutRunItem'),
          payoutId: idOf('payout'),
          affiliateId: idOf('affiliate'),
          affiliateName: nameOfAffiliate,
          amountCents: cents('The amount of the payout.'),
          status: textField('Returned', 'The word of the report.'),
          outcome: z.enum(REPORT_OUTCOMES).describe('What is stated, or why nothing is.'),
        }),
      )
      .describe(
        'The payouts that did not simply arrive: returned, pending and unknown ones, and those in conflict, at most 1,000.',
      ),
    unmatchedRows: z
      .array(
        z.object({
          row: count('Its line in the report. The header is the first.'),
          status: textField('Completed', 'The word of the report.'),
        }),
      )
      .describe('Rows that are not about a payout of this run, at most 100.'),
  })
  .meta({
    id: 'PayoutRunResults',
    description: 'What a report of a payment service states about a payout run.',
  });

export const sentMark = z
  .strictObject({
    state: z.literal('sent').describe('The money left.'),
    method: z
      .enum(PAYOUT_FILE_METHODS)
      .describe(
        'Only of the payouts in the files of this method, such as those that were uploaded. Default: of all.',
      )
      .optional(),
    reference: transferReference.optional(),
  })
  .meta({ id: 'NewPayoutRunTransfers', description: 'A statement about the payouts of a run.' });

const returns = {
  count: count('The number of all.'),
  totalCents: cents('The sum of all.'),
  rows: z
    .array(
      z.object({
        payoutId: idOf('payout'),
        affiliateId: idOf('affiliate'),
        affiliateName: nameOfAffiliate,
        totalCents: cents('The amount of the payout.'),
        returnedAt: epochMs('When it was stated that the money came back.'),
      }),
    )
    .describe('The largest 1,000.'),
};

export const returnedPayouts = z
  .object({
    ...returns,
    contradicted: z
      .object(returns)
      .describe(
        'Further payouts whose money came back, as is stated, and arrived or may arrive by another transfer, as a report says. No run sends them again until somebody has stated which is true.',
      ),
  })
  .meta({ id: 'ReturnedPayouts', description: 'Payouts whose money came back and was not sent again.' });

/** Returns what a report states. */
export function presentResults(opened: OpenedReport, assessment: Assessment): z.input<typeof runResults> {
  const statuses = new Map<string, { status: string; meaning: ReportedState; count: number }>();
  for (const { status, state } of opened.items) {
    const { count: before } = statuses.get(status) ?? { count: 0 };
    statuses.set(status, { status, meaning: state, count: before + 1 });
  }
  return {
    header: [...opened.header],
    columns: opened.columns,
    sentCount: statedCount(assessment, 'sent'),
    returnedCount: statedCount(assessment, 'returned'),
    conflictCount: countOf(assessment, 'conflict'),
    unchangedCount: countOf(assessment, 'unchanged'),
    pendingCount: countOf(assessment, 'pending'),
    unknownCount: countOf(assessment, 'unknown'),
    unmatchedCount: opened.unmatched.length,
    statuses: [...statuses.values()].slice(0, 100),
    rows: assessment
      .filter(({ assessed: { outcome } }) => outcome !== 'sent' && outcome !== 'unchanged')
      .slice(0, LISTED)
      .map(({ item, said: { status }, assessed: { outcome } }) => ({
        itemId: item.id,
        payoutId: item.payoutId,
        affiliateId: item.affiliateId,
        affiliateName: item.affiliateName,
        amountCents: item.amountCents,
        status,
        outcome,
      })),
    unmatchedRows: opened.unmatched.slice(0, 100),
  };
}
