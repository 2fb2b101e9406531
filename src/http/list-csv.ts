import { setImmediate as turn } from 'node:timers/promises';
import { Parser } from '@json2csv/plainjs';
import * as z from 'zod';
import { EOL, neutralizeFormula, quoteWhereNeeded } from '../domain/csv-cells.ts';
import type { RawReply } from './reply.ts';

/** The content type that a caller asks for to get a list as CSV. */
export const CSV_TYPE = 'text/csv';

/** Number of rows that one response has at most, and the most that are read at a time. */
export const CSV_ROWS = 10_000;
const CSV_PAGE = 1_000;
/** Number of rows that are read first, before it is known how long they are. */
const FIRST_PAGE = 200;
/** Number of rows that are rendered at a time, with a turn of the event loop after them. */
const RENDERED_ROWS = 200;
/** Number of pages that are read at most. */
const MOST_READS = 11;
/** After this length, the text ends with the page that was read last. */
export const CSV_BYTES = 8 * 1_024 * 1_024;

/** The headers of a list as CSV, with their descriptions. */
export const CSV_LIST_HEADERS = {
  'X-Next-Cursor': `With \`${CSV_TYPE}\`: pass it as \`cursor\` to get the rows after these. Absent after the last row.`,
};

/** Describes lists that are also returned as CSV. */
export const CSV_LIST =
  `With \`Accept: ${CSV_TYPE}\`, the response has up to ${CSV_ROWS} rows and about 8 MiB from \`cursor\` on, whatever \`limit\` is. Its ` +
  'columns are the fields that all rows have, with instants in ISO 8601.';

export interface PageOfRows {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor: string | null;
}

/** Whether an object may lack fields. It is one column then, as JSON, so that no field is left out. */
const hasVaryingFields = (object: z.ZodObject) =>
  Object.values(object.shape).some((field) => field instanceof z.ZodOptional);

/** Returns the columns of a list: the fields that all items have, those of an object inside by its name and a dot. */
function columnsOf(item: z.ZodObject, prefix = ''): string[] {
  return Object.entries(item.shape).flatMap(([name, field]) => {
    if (field instanceof z.ZodOptional) return [];
    const inner = field instanceof z.ZodNullable ? field.unwrap() : field;
    return inner instanceof z.ZodObject && !hasVaryingFields(inner)
      ? columnsOf(inner, `${prefix}${name}.`)
      : [prefix + name];
  });
}

/** The names of instants. */
const INSTANT = /(At|From|Until)$|^asOf$/;

/** Returns the cells of a row by column. An object that has a column of its own, because its fields vary, is JSON. */
function cellsOf(
  row: Readonly<Record<string, unknown>>,
  columns: ReadonlySet<string>,
  prefix = '',
): [string, unknown][] {
  return Object.entries(row).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null)
      return columns.has(prefix + name)
        ? [[prefix + name, JSON.stringify(value)]]
        : cellsOf(value as Readonly<Record<string, unknown>>, columns, `${prefix}${name}.`);
    const isInstant = typeof value === 'number' && INSTANT.test(name);
    return [[prefix + name, isInstant ? new Date(value).toISOString() : value]];
  });
}

/** Returns the item schema of a list. */
function itemOf(list: z.ZodType): z.ZodObject {
  const items = list instanceof z.ZodObject ? list.shape['items'] : undefined;
  const item = items instanceof z.ZodArray ? items.element : undefined;
  if (!(item instanceof z.ZodObject)) throw new Error('only a list of objects has a CSV');
  return item;
}

/** Returns how many rows to read next: as many as are left, also if they are as long as those before. */
function rowsOfNextPage(rows: number, bytes: number): number {
  if (rows === 0) return FIRST_PAGE;
  const fitting = Math.ceil(((CSV_BYTES - bytes) * rows) / bytes);
  return Math.min(CSV_PAGE, CSV_ROWS - rows, fitting);
}

/** Reads a list page by page and returns it as CSV. `readPage` gets the number of rows and the cursor. */
export async function csvOfList(
  list: z.ZodType,
  name: string,
  cursor: string | undefined,
  readPage: (limit: number, cursor: string | undefined) => Promise<PageOfRows>,
): Promise<RawReply> {
  const fields = columnsOf(itemOf(list));
  const columns = new Set(fields);
  const parser = new Parser({
    fields: fields.map((column) => ({
      label: column,
      value: (row: Readonly<Record<string, unknown>>) => row[column],
    })),
    header: false,
    eol: EOL,
    formatters: {
      string: (text: string) => quoteWhereNeeded(neutralizeFormula(text)),
    },
  });
  const parts = [fields.join(',') + EOL];
  let next = cursor ?? null;
  let [rows, bytes, reads] = [0, 0, 0];
  do {
    const page = await readPage(rowsOfNextPage(rows, bytes), next ?? undefined);
    for (let from = 0; from < page.items.length; from += RENDERED_ROWS) {
      const items = page.items.slice(from, from + RENDERED_ROWS);
      const text = parser.parse(items.map((row) => Object.fromEntries(cellsOf(row, columns)))) + EOL;
      parts.push(text);
      bytes += Buffer.byteLength(text);
      await turn();
    }
    next = page.nextCursor;
    rows += page.items.length;
    reads += 1;
    // A page of a filter without an index may have few rows.
  } while (next !== null && rows < CSV_ROWS && bytes < CSV_BYTES && reads < MOST_READS);
  return {
    headers: {
      'Content-Type': `${CSV_TYPE}; charset=utf-8`,
      'Content-Disposition': `attachment; filename="${name}.csv"`,
      ...(next === null ? {} : { 'X-Next-Cursor': next }),
    },
    body: parts.join(''),
  };
}
