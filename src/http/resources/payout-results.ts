import * as z from 'zod';
import { listReturned } from '../../db/payout-resends.ts';
import { findFiledItems, stateTransfers } from '../../db/payout-run-transfers.ts';
import type { FiledItem, Reports, SettledItems } from '../../db/payout-run-transfers.ts';
import {
  findColumns,
  outcomeOfReport,
  readReport,
  REPORT_OUTCOMES,
  REPORTED_STATES,
} from '../../domain/payout-report.ts';
import type {
  PayoutReport,
  ReportColumns,
  ReportedItem,
  ReportedState,
  ReportOutcome,
} from '../../domain/payout-report.ts';
import { CsvUnreadable, readCsvRecords } from '../csv-records.ts';
import type { CsvRecords } from '../csv-records.ts';
import { ApiError, foundOrThrow, invalidField } from '../errors.ts';
import { cents, count, epochMs, idOf, nameOfAffiliate, orNull, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { transferReference } from './payout-views.ts';

/** Rows that an answer lists at most. */
const LISTED = 1_000;

/** The longest report, characters: what a body has room for. */
const LONGEST_REPORT = 1_000_000;

const column = (example: string, description: string) =>
  z
    .string()
    .min(1)
    .max(200)
    .meta({ description, examples: [example] });
const word = z.string().max(200);

const report = z.strictObject({
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
      reference: column(
        'Transaction ID',
        'The name of the column with the reference of the payment service.',
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

const reportPreview = report.meta({
  id: 'PayoutReportPreview',
  description: 'A report of a payment service.',
});

const newReport = report
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

const runResults = z
  .object({
    header: z.array(z.string()).describe('The columns of the report.'),
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
          affiliateId: idOf('affiliate'),
          affiliateName: nameOfAffiliate,
          amountCents: cents('The amount of the payout.'),
          status: textField('Returned', 'The word of the report.'),
          outcome: z.enum(REPORT_OUTCOMES).describe('What is stated, or why nothing is.'),
        }),
      )
      .describe('The payouts that did not simply arrive: returned, pending and unknown ones, at most 1,000.'),
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

const sentMark = z
  .strictObject({
    state: z.literal('sent').describe('All money of the run left.'),
    reference: transferReference.optional(),
  })
  .meta({ id: 'NewPayoutRunTransfers', description: 'A statement about all payouts of a run.' });

const returnedPayouts = z
  .object({
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
  })
  .meta({ id: 'ReturnedPayouts', description: 'Payouts whose money came back and was not sent again.' });

/** A report whose columns were found. */
interface OpenedReport extends CsvRecords {
  readonly columns: ReportColumns;
  readonly meanings: ReadonlyMap<string, ReportedState>;
}

/** Reads the CSV of a report and finds its columns. Throws a 400 that says what is wrong. */
async function openReport({ csv, columns, meanings }: z.output<typeof report>): Promise<OpenedReport> {
  const { header, records } = await readCsvRecords(csv).catch((error: unknown) => {
    if (error instanceof CsvUnreadable) throw invalidField('csv', `Is no CSV: ${error.message}`);
    throw error;
  });
  for (const [field, name] of Object.entries(columns ?? {})) {
    if (name !== undefined && !header.includes(name))
      throw invalidField(`columns.${field}`, `The report has no column ${name}.`);
  }
  const found =
    columns === undefined
      ? findColumns(header)
      : { status: columns.status, reference: columns.reference ?? null };
  if (found === null) {
    throw invalidField(
      'columns.status',
      `No column is known to have the status. Choose one of: ${header.join(', ').slice(0, LISTED)}.`,
    );
  }
  return { header, records, columns: found, meanings: new Map(Object.entries(meanings ?? {})) };
}

/** What a report says of the items of a run, and what is stated of each. */
interface Assessment {
  readonly report: PayoutReport;
  readonly outcomes: readonly {
    readonly item: FiledItem;
    readonly said: ReportedItem;
    readonly outcome: ReportOutcome;
  }[];
}

/** Reads what a report says of the items of a run, which stay the same. */
const read = ({ records, ...opened }: OpenedReport, items: readonly FiledItem[]): PayoutReport =>
  readReport(records, { ...opened, itemIds: items.map(({ id }) => id) });

function assess(said: PayoutReport, items: readonly FiledItem[]): Assessment {
  const byId = new Map(items.map((item) => [item.id, item]));
  return {
    report: said,
    outcomes: said.items.flatMap((one) => {
      const item = byId.get(one.itemId);
      return item === undefined ? [] : [{ item, said: one, outcome: outcomeOfReport(one.state, item) }];
    }),
  };
}

const countOf = ({ outcomes }: Assessment, wanted: ReportOutcome) =>
  outcomes.filter(({ outcome }) => outcome === wanted).length;

const reportsOf = ({ outcomes }: Assessment): Reports =>
  new Map(
    outcomes.flatMap(({ item, said: { state, reference } }) =>
      state === 'sent' || state === 'returned' ? [[item.id, { reported: state, reference }]] : [],
    ),
  );

function presentResults(opened: OpenedReport, assessment: Assessment): z.input<typeof runResults> {
  const { report: said, outcomes } = assessment;
  const statuses = new Map<string, { status: string; meaning: ReportedState; count: number }>();
  for (const { status, state } of said.items) {
    const { count: before } = statuses.get(status) ?? { count: 0 };
    statuses.set(status, { status, meaning: state, count: before + 1 });
  }
  return {
    header: [...opened.header],
    columns: opened.columns,
    sentCount: countOf(assessment, 'sent'),
    returnedCount: countOf(assessment, 'returned'),
    unchangedCount: countOf(assessment, 'unchanged'),
    pendingCount: countOf(assessment, 'pending'),
    unknownCount: countOf(assessment, 'unknown'),
    unmatchedCount: said.unmatched.length,
    statuses: [...statuses.values()].slice(0, 100),
    rows: outcomes
      .filter(({ outcome }) => outcome !== 'sent' && outcome !== 'unchanged')
      .slice(0, LISTED)
      .map(({ item, said: { status }, outcome }) => ({
        itemId: item.id,
        affiliateId: item.affiliateId,
        affiliateName: item.affiliateName,
        amountCents: item.amountCents,
        status,
        outcome,
      })),
    unmatchedRows: said.unmatched.slice(0, 100),
  };
}

/** Whether nothing was stated of a payout since its file, and can be. */
const isUnmarked = (item: FiledItem) => !item.isStated && outcomeOfReport('sent', item) === 'sent';

/** Returns the items of a settled run. Throws a 404 for an unknown run, and a 409 for one that is not settled. */
function settledOrThrow(items: SettledItems): readonly FiledItem[] {
  const found = foundOrThrow(items);
  if (found === 'not_settled') throw new ApiError('payout_run_not_settled');
  return found;
}

export const payoutResultRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/payouts/returned',
    caller: accountApp('read'),
    operationId: 'listReturnedPayouts',
    summary: 'Lists payouts whose money came back and was not sent again, the largest first.',
    description: 'A payout run of the kind `resend` sends them again.',
    response: { status: 200, schema: returnedPayouts },
    handler: async ({ deps, app }) => {
      const { rows, count: all, totalCents } = await listReturned(deps.sql, app.id, LISTED);
      return { count: all, totalCents, rows: [...rows] };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/transfers',
    caller: accountApp('payout'),
    operationId: 'addPayoutRunTransfers',
    summary: 'States that the money of all payouts of a run was sent.',
    description:
      'Of payouts about which something was stated since their file, nothing is stated. Calling it again states nothing more.',
    ids: { runId: 'payoutRun' },
    body: sentMark,
    errors: ['payout_run_not_settled'],
    response: {
      status: 200,
      schema: z
        .object({ sentCount: count('The number of payouts of which it was stated.') })
        .meta({ id: 'PayoutRunTransfers', description: 'What was stated about the payouts of a run.' }),
    },
    handler: async ({ deps, caller, app, ids, body }) => {
      const { accountId, keyId } = caller;
      const items = await stateTransfers<never>(
        deps.sql,
        { appId: app.id, runId: ids.runId, accountId, keyId },
        (all) =>
          new Map(
            all
              .filter(isUnmarked)
              .map(({ id }) => [id, { reported: 'sent', reference: body.reference ?? null }]),
          ),
      );
      return { sentCount: settledOrThrow(items).filter(isUnmarked).length };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/results/preview',
    caller: accountApp('payout'),
    operationId: 'previewPayoutRunResults',
    summary: 'Reads a report of a payment service, and says what it would state. Changes nothing.',
    ids: { runId: 'payoutRun' },
    body: reportPreview,
    errors: ['payout_run_not_settled'],
    response: { status: 200, schema: runResults },
    handler: async ({ deps, app, ids, body }) => {
      const opened = await openReport(body);
      const items = settledOrThrow(await findFiledItems(deps.sql, app.id, ids.runId));
      return presentResults(opened, assess(read(opened, items), items));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/results',
    caller: accountApp('payout'),
    operationId: 'addPayoutRunResults',
    summary: 'States what a report of a payment service says: which payouts were sent, and which came back.',
    description:
      'Rows count for the payouts of this run alone. A payout that came back without having been stated as sent gets both statements. Sending a report again states nothing more.',
    ids: { runId: 'payoutRun' },
    body: newReport,
    errors: ['payout_run_not_settled', 'payout_report_changed'],
    response: { status: 200, schema: runResults },
    handler: async ({ deps, caller, app, ids, body }) => {
      const opened = await openReport(body);
      const { accountId, keyId } = caller;
      let first: Assessment | undefined;
      const items = await stateTransfers(
        deps.sql,
        { appId: app.id, runId: ids.runId, accountId, keyId },
        (all) => {
          const assessment = assess(first?.report ?? read(opened, all), all);
          first ??= assessment;
          // A repetition after an answer that was lost states less, or nothing, and succeeds.
          const isExpected =
            countOf(assessment, 'sent') <= body.expected.sentCount &&
            countOf(assessment, 'returned') <= body.expected.returnedCount;
          return isExpected ? reportsOf(assessment) : 'payout_report_changed';
        },
      );
      if (items === 'payout_report_changed') throw new ApiError('payout_report_changed');
      const settled = settledOrThrow(items);
      return presentResults(opened, first ?? assess(read(opened, settled), settled));
    },
  }),
];
