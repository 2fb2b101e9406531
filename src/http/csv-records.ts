import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { countDelimiters, delimiterOf } from '../domain/csv-delimiter.ts';

/** Bytes and cells that are read without a turn of the event loop for others: a few milliseconds. */
const CHUNK = 16_384;
const CELLS_IN_A_TURN = 5_000;

/** What a report has at most. Reading a cell takes about half a microsecond, whatever is in it. */
const MOST_COLUMNS = 200;
const MOST_ROWS = 25_000;
const MOST_CELLS = 250_000;
const LONGEST_ROW = 65_536;

/** A text that is no CSV with a header line. */
export class CsvUnreadable extends Error {}

/** The lines of a CSV after its header, as cells. */
export interface CsvRecords {
  readonly header: readonly string[];
  readonly records: readonly (readonly string[])[];
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += CHUNK) yield bytes.subarray(start, start + CHUNK);
}

const tooManyColumns = () => new CsvUnreadable(`A row has more than ${MOST_COLUMNS} columns.`);

/** Throws `CsvUnreadable` for a text whose cells would take too long to read, before any is read. */
function refuseManyCells(text: string, delimiter: string): void {
  const [header = ''] = text.split(/\r?\n/, 1);
  // A name in quotes may have delimiters, too, but not as many.
  if (countDelimiters(header, delimiter, 2 * MOST_COLUMNS) >= 2 * MOST_COLUMNS) throw tooManyColumns();
  if (countDelimiters(text, delimiter, MOST_CELLS) >= MOST_CELLS)
    throw new CsvUnreadable(`It has more than ${MOST_CELLS} cells. Send it in parts.`);
}

/** Calls `read` with rows in their order, in parts, with turns of the event loop for others in between. */
export async function readInTurns(
  records: CsvRecords['records'],
  read: (part: CsvRecords['records']) => void,
): Promise<void> {
  let start = 0;
  let cells = 0;
  for (const [n, record] of records.entries()) {
    cells += 1 + record.length;
    if (cells < CELLS_IN_A_TURN) continue;
    read(records.slice(start, n + 1));
    [start, cells] = [n + 1, 0];
    await turn();
  }
  read(records.slice(start));
}

/** Reads CSV with a header line, separated by commas, semicolons or tabs. Throws `CsvUnreadable` with a sentence about what is wrong. */
export async function readCsvRecords(text: string): Promise<CsvRecords> {
  const delimiter = delimiterOf(text);
  refuseManyCells(text, delimiter);
  const options = {
    bom: true,
    delimiter,
    max_record_size: LONGEST_ROW,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
  };
  const parser = Readable.from(chunksOf(Buffer.from(text))).pipe(parse(options));
  const rows: string[][] = [];
  let cellsInTurn = 0;
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      if (cells.length > MOST_COLUMNS) throw tooManyColumns();
      if (rows.length > MOST_ROWS)
        throw new CsvUnreadable(`It has more than ${MOST_ROWS} rows. Send it in parts.`);
      rows.push(cells);
      cellsInTurn += 1 + cells.length;
      if (cellsInTurn < CELLS_IN_A_TURN) continue;
      cellsInTurn = 0;
      await turn();
    }
  } catch (error) {
    if (error instanceof CsvError) throw new CsvUnreadable(error.message);
    throw error;
  }
  const [header, ...records] = rows;
  if (header === undefined) throw new CsvUnreadable('It is empty.');
  return { header, records };
}
