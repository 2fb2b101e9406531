import { assessReport, findColumns, ReportReader } from '../../domain/payout-report.ts';
import type {
  AssessedItem,
  PayoutReport,
  ReportColumns,
  ReportedItem,
  ReportedState,
  ReportOutcome,
} from '../../domain/payout-report.ts';
import type { FiledItem, Reports } from '../../db/payout-run-transfers.ts';
import { CsvUnreadable, readCsvRecords, readInTurns } from '../csv-records.ts';
import { invalidField } from '../errors.ts';

/** The characters of a message that list columns. */
const LISTED = 1_000;

/** A report, as a call has it. */
export interface GivenReport {
  readonly csv: string;
  readonly columns?: { readonly status: string; readonly reference?: string | null | undefined } | undefined;
  readonly meanings?: Readonly<Record<string, ReportedState>> | undefined;
}

/** A report that was read. */
export interface OpenedReport extends PayoutReport {
  readonly header: readonly string[];
  readonly columns: ReportColumns;
}

/**
 * Reads a report about the items of a run, which stay the same. A large one takes a tenth of a second, in which others have their turns.
 * Throws a 400 that says what is wrong.
 */
export async function readPayoutReport(
  { csv, columns, meanings }: GivenReport,
  items: readonly FiledItem[],
): Promise<OpenedReport> {
  const { header, records } = await readCsvRecords(csv).catch((error: unknown) => {
    if (error instanceof CsvUnreadable) throw invalidField('csv', `Is no CSV: ${error.message}`);
    throw error;
  });
  const found = columnsOf(header, columns);
  const reader = new ReportReader({
    header,
    columns: found,
    meanings: new Map(Object.entries(meanings ?? {})),
    itemIds: items.map(({ id }) => id),
  });
  await readInTurns(records, (part) => reader.read(part));
  return { ...reader.report(), header, columns: found };
}

function columnsOf(header: readonly string[], given: GivenReport['columns']): ReportColumns {
  for (const [field, name] of Object.entries(given ?? {})) {
    if (name != null && !header.includes(name))
      throw invalidField(`columns.${field}`, `The report has no column ${name}.`);
  }
  // A report whose status column has an unknown name can have a known one for the reference, which tells two transfers apart.
  const found = findColumns(header, given);
  if (found !== null) return found;
  throw invalidField(
    'columns.status',
    `No column is known to have the status. Choose one of: ${header.join(', ').slice(0, LISTED)}.`,
  );
}

/** What a report does to each item that it is about. */
export type Assessment = readonly {
  readonly item: FiledItem;
  readonly said: ReportedItem;
  readonly assessed: AssessedItem;
}[];

/** Returns what a report does to the items of its run. */
export function assess(report: PayoutReport, items: readonly FiledItem[]): Assessment {
  const byId = new Map(items.map((item) => [item.id, item]));
  return report.items.flatMap((said) => {
    const item = byId.get(said.itemId);
    return item === undefined ? [] : [{ item, said, assessed: assessReport(said, item) }];
  });
}

/** Counts the items with an outcome. */
export const countOf = (assessment: Assessment, wanted: ReportOutcome): number =>
  assessment.filter(({ assessed }) => assessed.outcome === wanted).length;

/** Counts the items of which something is stated. */
export const statedCount = (assessment: Assessment, wanted: 'sent' | 'returned'): number =>
  assessment.filter(({ assessed }) => assessed.statements.at(-1) === wanted).length;

/** Returns what is to be written of each item. */
export const reportsOf = (assessment: Assessment): Reports =>
  new Map(
    assessment.map(({ item, said: { reference }, assessed: { statements, others } }) => [
      item.id,
      { statements, others, reference },
    ]),
  );
