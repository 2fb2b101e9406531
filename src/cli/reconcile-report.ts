import { csvLine, neutralizeFormula } from '../domain/csv-cells.ts';
import { FINDING_KINDS } from '../domain/reconcile-findings.ts';
import type { Finding, FindingKind } from '../domain/reconcile-findings.ts';
import { CAUSE_EXPLANATIONS } from '../domain/likely-causes.ts';
import { formatMinor } from '../domain/money.ts';
import type { ExportComparison, FeedableFinding } from '../reconcile/comparison.ts';
import type { FeedBackResult } from '../reconcile/feed-back.ts';
import { formatTable } from './output.ts';
import type { TableRow } from './output.ts';

export const REPORT_FORMATS = ['table', 'csv', 'json'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

/** A longer table is cut off; CSV and JSON have all findings. */
const MAX_TABLE_ROWS = 200;

const EXPLANATIONS: Readonly<Record<FindingKind, string>> = {
  missing_payment: 'in the export, and no webhook has reported it',
  missing_refund: 'a refund or dispute in the export that no webhook has reported',
  wrong_amount: 'the export and the webhook state different amounts',
  wrong_refund: 'the export and the webhooks state different refunds',
  payment_not_in_export: 'a webhook reported it, and the export does not have it',
  refund_not_in_export: 'a webhook reported this refund or dispute, and the export does not have it',
  unreadable: 'rows of the export that could not be read',
  earned_nothing: 'payments that earned for nobody; not a difference',
};

function amountText(minor: number | null, currency: string | null): string {
  return minor === null || currency === null ? '' : formatMinor(minor, currency);
}

/** The columns of the CSV, with what each finding has in them. */
const COLUMNS = {
  finding: ({ kind }) => kind,
  occurred_at: ({ at }) => (at === null ? '' : new Date(at).toISOString()),
  line: ({ line }) => String(line ?? ''),
  store: ({ store }) => store ?? '',
  payment_ref: ({ paymentRef }) => paymentRef ?? '',
  refund_ref: ({ refundRef }) => refundRef ?? '',
  customer_user_id: ({ customerUserId }) => customerUserId ?? '',
  currency: ({ currency }) => currency ?? '',
  exported_amount: ({ exportedMinor, currency }) => amountText(exportedMinor, currency),
  recorded_amount: ({ recordedMinor, currency }) => amountText(recordedMinor, currency),
  event_id: ({ eventId }) => eventId ?? '',
  cause: ({ cause }) => cause ?? '',
  detail: ({ detail }) => detail,
  feed_back: (finding) => finding.feedBack ?? '',
} as const satisfies Readonly<Record<string, (finding: Finding) => string>>;

/** Columns whose text comes from the export or the app. The others are ids, numbers and sentences of this program. */
const FOREIGN: ReadonlySet<string> = new Set([
  'payment_ref',
  'refund_ref',
  'customer_user_id',
  'store',
  'detail',
]);

async function writeCsv(findings: AsyncIterable<Finding>, write: (text: string) => void): Promise<void> {
  write(csvLine(Object.keys(COLUMNS)));
  for await (const finding of findings) {
    write(
      csvLine(
        Object.entries(COLUMNS).map(([name, text]) => {
          const cell = text(finding);
          return FOREIGN.has(name) ? neutralizeFormula(cell) : cell;
        }),
      ),
    );
  }
}

/** Returns what the report says besides its findings. */
function summaryOf(comparison: ExportComparison, differences: number, fed: FeedBackResult | null) {
  const { title, rows, skipped, range, payments, matched, earnedNothing, counts } = comparison;
  return {
    export: title,
    rows,
    skipped,
    from: range?.from ?? null,
    to: range?.to ?? null,
    payments,
    matched,
    differences,
    counts,
    earnedNothing: earnedNothing.map((one) => ({ ...one, explanation: CAUSE_EXPLANATIONS[one.cause] })),
    feedBack: fed,
  };
}

async function writeJson(
  summary: object,
  findings: AsyncIterable<FeedableFinding>,
  write: (text: string) => void,
): Promise<void> {
  write(`${JSON.stringify(summary).slice(0, -1)},"findings":[`);
  let separator = '\n';
  for await (const { bodies: _, ...finding } of findings) {
    write(separator + JSON.stringify(finding));
    separator = ',\n';
  }
  write(']}\n');
}

function tableRow(finding: Finding): TableRow {
  const { kind, at, line, paymentRef, refundRef, customerUserId, currency, feedBack } = finding;
  const amounts = [finding.exportedMinor, finding.recordedMinor].map((minor) => amountText(minor, currency));
  return {
    finding: kind,
    occurredAt: at,
    line,
    payment: refundRef === null ? paymentRef : `${paymentRef ?? ''} ${refundRef}`,
    user: customerUserId,
    currency,
    export: amounts[0] ?? '',
    ledger: amounts[1] ?? '',
    event: finding.eventId,
    detail: finding.cause ?? finding.detail,
    feedBack,
  };
}

async function writeTable(
  comparison: ExportComparison,
  fed: FeedBackResult | null,
  write: (text: string) => void,
): Promise<void> {
  const rows: TableRow[] = [];
  let more = 0;
  for await (const finding of comparison.findings()) {
    if (rows.length < MAX_TABLE_ROWS) rows.push(tableRow(finding));
    else more += 1;
  }
  write(`${formatTable(rows)}\n`);
  if (more > 0) write(`${more} more. --format csv and --format json have all of them.\n`);
  for (const line of summaryLines(comparison, fed)) write(`${line}\n`);
}

const isoRange = ({ from, to }: { from: number; to: number }): string =>
  `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;

/** Returns the report's summary in sentences. */
function summaryLines(comparison: ExportComparison, fed: FeedBackResult | null): string[] {
  const { title, rows, range, payments, matched, skipped, counts, earnedNothing } = comparison;
  return [
    '',
    `${rows} rows of "${title}"${range === null ? '' : `, ${isoRange(range)}`}.`,
    `${payments} payments, ${matched} of them in the ledger.`,
    ...FINDING_KINDS.flatMap((kind) => {
      const count = counts[kind] ?? 0;
      return count === 0 || kind === 'earned_nothing' ? [] : [`${count} ${kind}: ${EXPLANATIONS[kind]}.`];
    }),
    ...earnedNothing.map(
      ({ cause, payments: count }) => `${count} earned nothing, ${cause}: ${CAUSE_EXPLANATIONS[cause]}`,
    ),
    ...skipped.map(({ reason, rows: count }) => `${count} rows not compared: ${reason}.`),
    ...(fed === null ? [] : feedBackLines(fed)),
  ];
}

function feedBackLines({ events, earned, duplicates, failures, waiting }: FeedBackResult): string[] {
  return [
    `${events} events added: ${earned} changed commissions, ${duplicates} were known already, ${failures.length} failed, ${waiting} are not processed yet.`,
    ...[...new Set(failures)].slice(0, 10).map((reason) => `Failed: ${reason}.`),
  ];
}

/** Writes the report of a comparison. */
export async function writeReport(
  format: ReportFormat,
  comparison: ExportComparison,
  { differences, fed }: { readonly differences: number; readonly fed: FeedBackResult | null },
  write: (text: string) => void,
): Promise<void> {
  switch (format) {
    case 'csv':
      return await writeCsv(comparison.findings(), write);
    case 'json':
      return await writeJson(summaryOf(comparison, differences, fed), comparison.findings(), write);
    case 'table':
      return await writeTable(comparison, fed, write);
  }
}
