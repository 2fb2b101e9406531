import Table from 'cli-table3';

/** A command that is well formed and can't be carried out. The message is shown to the operator. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError';
}

/** Exit statuses. `different`: a comparison found a difference. */
export const EXIT = { ok: 0, failed: 1, usage: 2, different: 3 } as const;

/** Named cells of one row, in the order of the columns. */
type Cell = string | number | null | readonly string[];
export type TableRow = Readonly<Record<string, Cell>>;

/** Returns the text of a cell. Numbers in a column whose name ends in `At` are epoch ms and become ISO 8601. */
function cellText(name: string, cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return name.endsWith('At') ? new Date(cell).toISOString() : String(cell);
  return typeof cell === 'string' ? cell : cell.join(', ');
}

/** Formats rows as a table, or as `None.` without rows. With `widths`, in characters, long cells wrap. */
export function formatTable(rows: readonly TableRow[], widths?: number[]): string {
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
