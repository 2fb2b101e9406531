import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { delimiterOf } from '../domain/csv-delimiter.ts';

/** Bytes and rows that are read without a turn of the event loop for others. */
const CHUNK = 16_384;
const ROWS_IN_A_TURN = 500;

/** What a report has at most. */
const MOST_COLUMNS = 200;
const MOST_ROWS = 25_000;

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

/** Reads CSV with a header line, separated by commas, semicolons or tabs. Throws `CsvUnreadable` with a sentence about what is wrong. */
export async function readCsvRecords(text: string): Promise<CsvRecords> {
  const options = {
    bom: true,
    delimiter: delimiterOf(text),
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
  };
  const parser = Readable.from(chunksOf(Buffer.from(text))).pipe(parse(options));
  const rows: string[][] = [];
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      if (cells.length > MOST_COLUMNS)
        throw new CsvUnreadable(`A row has more than ${MOST_COLUMNS} columns.`);
      if (rows.length > MOST_ROWS)
        throw new CsvUnreadable(`It has more than ${MOST_ROWS} rows. Send it in parts.`);
      rows.push(cells);
      if (rows.length % ROWS_IN_A_TURN === 0) await turn();
    }
  } catch (error) {
    if (error instanceof CsvError) throw new CsvUnreadable(error.message);
    throw error;
  }
  const [header, ...records] = rows;
  if (header === undefined) throw new CsvUnreadable('It is empty.');
  return { header, records };
}
