import Table from 'cli-table3';

/** A command that was understood and can't be done. Its message is one sentence. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Exit statuses. */
export const EXIT = { ok: 0, refused: 1, usage: 2 } as const;

/** A value in a table for people. */
type Cell = string | number | null | readonly string[];
export type Answer = Readonly<Record<string, Cell>>;

function cellText(name: string, cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return name.endsWith('At') ? new Date(cell).toISOString() : String(cell);
  return typeof cell === 'string' ? cell : cell.join(', ');
}

/** Rows for people: a table with one line per row, or columns of given widths with as many lines as they need. */
export function tableOf(rows: readonly Answer[], widths?: number[]): string {
  const [first] = rows;
  if (first === undefined) return 'None.';
  const head = Object.keys(first);
  const table = new Table({
    head,
    style: { head: [], border: [] },
    ...(widths === undefined ? {} : { colWidths: widths, wordWrap: true }),
  });
  table.push(...rows.map((row) => head.map((name) => cellText(name, row[name] ?? null))));
  return table.toString();
}
