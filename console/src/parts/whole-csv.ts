import { recordsOf } from './csv-text.ts';
import { saveFile } from './save-file.ts';

/** A part of a list as CSV, and the cursor of the next part. */
export interface CsvPart {
  readonly text: string;
  readonly nextCursor: string | null;
}

/** Number of parts that one file has at most: half a million rows. */
const MOST_PARTS = 50;
/** Number of rows that the service returns in one part at most. */
const ROWS_OF_PART = 10_000;
/** Number of rows that one file has at most. */
export const MOST_CSV_ROWS = MOST_PARTS * ROWS_OF_PART;

/** Reads the rows of a list with these ids as CSV: those of the list, with the same columns, of which the first is the id. */
export async function readSelected(
  readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>,
  ids: ReadonlySet<string>,
): Promise<Blob> {
  const found: string[] = [];
  let missing = ids.size;
  let cursor: string | null = null;
  for (let part = 0; missing > 0 && part < MOST_PARTS; part += 1) {
    const { text, nextCursor } = await readPart(cursor === null ? {} : { cursor });
    const [header = '', ...records] = recordsOf(text);
    const rows = records.filter((record) => ids.has(record.slice(0, record.indexOf(','))));
    found.push(...(part === 0 ? [header] : []), ...rows);
    missing -= rows.length;
    cursor = nextCursor;
    if (cursor === null) break;
  }
  return new Blob(found, { type: 'text/csv' });
}

/** Saves the parts of a list as one CSV, up to 50, without the header lines of later parts. Returns whether the list has more rows than the file. */
export async function saveWholeCsv(
  name: string,
  readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>,
): Promise<boolean> {
  const parts: string[] = [];
  let cursor: string | null = null;
  do {
    const part = await readPart(cursor === null ? {} : { cursor });
    parts.push(parts.length === 0 ? part.text : part.text.slice(part.text.indexOf('\n') + 1));
    cursor = part.nextCursor;
  } while (cursor !== null && parts.length < MOST_PARTS);
  saveFile(new Blob(parts, { type: 'text/csv' }), `${name}.csv`);
  return cursor !== null;
}
