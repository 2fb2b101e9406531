import { appendFileSync } from 'node:fs';

/** A row of the table of docs/performance.md. */
export interface Row {
  readonly path: string;
  readonly comparedWith: string;
  /** What was measured, with units. */
  readonly measured: string;
  /** The ratio or figure that decides, as text; empty for a row that only informs. */
  readonly target: string;
  /** Null for a row that only informs. */
  readonly isReached: boolean | null;
}

/** Whether each benchmark runs for about a second, to show that it works. A missed limit then means nothing. */
export const IS_QUICK = process.env['BENCH_QUICK'] === '1';

/** Prints a row, and passes it on to `npm run bench`, which names a file for the rows. */
export function report(row: Row): void {
  const verdict = row.isReached === null ? '' : row.isReached ? ', reached' : ', MISSED';
  process.stdout.write(
    `${row.path} / ${row.comparedWith}: ${row.measured}${row.target && `; target: ${row.target}`}${verdict}\n`,
  );
  const file = process.env['BENCH_ROWS_FILE'];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(row)}\n`);
}

/** Formats a ratio: `0.83`. */
export const ratio = (value: number) => value.toFixed(2);
