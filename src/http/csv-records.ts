import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { delimiterOf } from '../domain/csv-delimiter.ts';

/** Characters that are parsed without a pause for other requests. */
const CHUNK = 16_384;

/** A text that is no CSV with a header line. */
export class CsvUnreadable extends Error {}

/** The lines of a CSV after its header, as cells by column. */
export interface CsvRecords {
  readonly header: readonly string[];
  readonly records: readonly Readonly<Record<string, string>>[];
}

function* chunksOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; start += CHUNK) yield text.slice(start, start + CHUNK);
}

/**
 * Reads CSV with a header line, separated by commas, semicolons or tabs. Of columns with the same name, the first counts. Throws
 * `CsvUnreadable` with a sentence about what is wrong.
 */
export async function readCsvRecords(text: string): Promise<CsvRecords> {
  const parser = Readable.from(chunksOf(text)).pipe(
    parse({
      bom: true,
      delimiter: delimiterOf(text),
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      trim: true,
    }),
  );
  let header: readonly string[] | undefined;
  const records: Record<string, string>[] = [];
  try {
    for await (const cells of parser as AsyncIterable<readonly string[]>) {
      if (header === undefined) {
        header = cells;
        continue;
      }
      const columns = header;
      // From the last column to the first, so that the first of the same name stays.
      records.push(
        Object.fromEntries(columns.map((name, n) => [name, cells[n] ?? ''] as const).toReversed()),
      );
    }
  } catch (error) {
    if (error instanceof CsvError) throw new CsvUnreadable(error.message);
    throw error;
  }
  if (header === undefined) throw new CsvUnreadable('It is empty.');
  return { header, records };
}
