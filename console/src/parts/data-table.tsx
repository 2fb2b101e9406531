import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import type { MouseEvent, ReactNode } from 'react';
import { SelectBox } from './selection.tsx';
import type { Selection } from './selection.tsx';
import { useDensity, useHiddenColumns } from './table-look.ts';

/** A column of a table: its name, and what a row has in it, on one line. */
export interface Column<T> {
  readonly name: string;
  readonly cell: (row: T) => ReactNode;
  /** Numbers are aligned at the right, and so are the buttons of a row, whose column has a name for screen readers only. */
  readonly kind?: 'text' | 'number' | 'actions';
  /** What a row is about: the first line of a row on a phone. The first column by default. */
  readonly isAbout?: boolean;
  /** Whether it is at the right of that line. */
  readonly isLead?: boolean;
  /** Whether a phone shows the name before what a row has. It does for numbers. */
  readonly isNamed?: boolean;
  /** Whether it goes away where a table has little room: 3 first, 1 last. */
  readonly dropsAt?: 1 | 2 | 3;
  /** Whether a phone leaves it out, where a row has two lines. */
  readonly isOffPhone?: boolean;
  /**
   * The share of the width that the columns with a share divide, whose long texts are cut. A column without one is as wide as
   * what it has, such as an amount, a state or a button.
   */
  readonly share?: number;
  /** The order of the list by this column, if it has one. */
  readonly sort?: { readonly by: string; readonly direction: 'ascending' | 'descending' };
}

/** The columns of a table, without those that a page leaves out. */
export type Columns<T> = readonly (Column<T> | false)[];

/** Returns the columns, and what a row is about: the first one where none says so. */
function aboutOf<T>(columns: Columns<T>): readonly Column<T>[] {
  const given = columns.filter((column) => column !== false);
  const hasAbout = given.some(({ isAbout }) => isAbout === true);
  return given.map((column, index) => (hasAbout || index > 0 ? column : { ...column, isAbout: true }));
}

/** Returns the columns that can be hidden: not what a row is about, nor its buttons. */
export const columnsToHide = <T,>(columns: Columns<T>): readonly Column<T>[] =>
  aboutOf(columns).filter(({ isAbout, kind }) => isAbout !== true && kind !== 'actions');

/** The order of a list, and how it is changed. An empty text is the order that no column has. */
interface Sorting {
  readonly by: string;
  readonly onChange: (by: string) => void;
}

function classOf<T>({ kind, share, isAbout, isLead, dropsAt, isOffPhone }: Column<T>): string | undefined {
  const names = [
    kind === 'text' || kind === undefined ? null : kind,
    share === undefined ? null : 'shared',
    isAbout === true ? 'about' : null,
    isLead === true ? 'lead' : null,
    dropsAt === undefined ? null : `drops-${dropsAt}`,
    isOffPhone === true ? 'off-phone' : null,
  ].filter((name) => name !== null);
  return names.length === 0 ? undefined : names.join(' ');
}

function HeadCell<T>({
  column,
  width,
  sorting,
}: {
  readonly column: Column<T>;
  readonly width: string | undefined;
  readonly sorting: Sorting | undefined;
}) {
  const { name, sort, kind } = column;
  const cell = { scope: 'col', className: classOf(column), style: { width } } as const;
  if (sort === undefined || sorting === undefined)
    return <th {...cell}>{kind === 'actions' ? <span className="spoken">{name}</span> : name}</th>;
  const isSorted = sorting.by === sort.by;
  const Arrow = !isSorted ? ChevronsUpDown : sort.direction === 'ascending' ? ArrowUp : ArrowDown;
  return (
    <th {...cell} aria-sort={isSorted ? sort.direction : 'none'}>
      <button type="button" className="sort" onClick={() => sorting.onChange(isSorted ? '' : sort.by)}>
        {name}
        <Arrow size={12} aria-hidden="true" />
      </button>
      {/* On a phone, where the heads are not shown and nothing in them must take the focus. */}
      <span className="sort-name">{name}</span>
    </th>
  );
}

/** A click anywhere in a row does what its link does, also with the keys that open another tab. */
function followLink(event: MouseEvent<HTMLElement>) {
  const target = event.target as HTMLElement;
  if (target.closest('a, button, input, label, th') !== null || getSelection()?.isCollapsed === false) return;
  const link = target
    .closest('tr')
    ?.querySelector('[data-opens-row], tr:not(:has([data-opens-row])) > td.about a');
  const { ctrlKey, metaKey, shiftKey } = event;
  link?.dispatchEvent(
    new globalThis.MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }),
  );
}

/** Shows the whole text of a cell that is cut, where the pointer is. */
function showWhole({ target }: MouseEvent<HTMLElement>) {
  const cell = (target as HTMLElement).closest<HTMLElement>('td, th');
  if (cell === null) return;
  const lines = cell.querySelector('.two-lines');
  const isCut =
    lines === null ? cell.scrollWidth > cell.clientWidth : lines.scrollHeight > lines.clientHeight;
  if (isCut) cell.title = cell.innerText;
  else cell.removeAttribute('title');
}

/** The checkbox above the rows. It is no heading of a column. */
function SelectAll<T>({
  rows,
  idOf,
  selection,
}: {
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  readonly selection: Selection<T>;
}) {
  const count = rows.filter((row) => selection.has(idOf(row))).length;
  return (
    <td className="select">
      <SelectBox
        label="Select all rows"
        isSelected={count === rows.length}
        isPartly={count > 0 && count < rows.length}
        onChange={(isSelected) => selection.set(rows.map(idOf), isSelected)}
      />
    </td>
  );
}

/**
 * A table whose rows are a line high each: a text that does not fit is cut, and whole where the pointer is. One of the class
 * `wrapped` goes on in further lines, with `two-lines` in one. A click anywhere in a row does what its part with `data-opens-row` does, or else the link in the cell of
 * what it is about. On a phone, a row is what it is about and the lead on a line, and the other cells below. Columns that somebody has
 * hidden by the menu of the table called `name` are left out.
 */
export function DataTable<T>({
  name = '',
  columns,
  rows,
  idOf,
  sorting,
  selection,
  caption,
  foot,
}: {
  readonly name?: string;
  readonly columns: Columns<T>;
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  readonly sorting?: Sorting;
  /** Given where rows can be selected. */
  readonly selection?: Selection<T>;
  /** What the table is, for screen readers, where no heading says so. */
  readonly caption?: string;
  readonly foot?: ReactNode;
}) {
  const [hidden] = useHiddenColumns(name);
  const [density] = useDensity();
  const away = new Set(
    columnsToHide(columns).flatMap((one) => (hidden.includes(one.name) ? [one.name] : [])),
  );
  const shown = aboutOf(columns).filter((column) => !away.has(column.name));
  const whole = shown.reduce((sum, { share = 0 }) => sum + share, 0);
  return (
    <div className="data-box">
      {/* The links and buttons of the rows do the same by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions */}
      <table className="rows data" data-density={density} onClick={followLink} onPointerOver={showWhole}>
        {caption !== undefined && <caption className="spoken">{caption}</caption>}
        <thead>
          <tr>
            {selection !== undefined && <SelectAll rows={rows} idOf={idOf} selection={selection} />}
            {shown.map((column) => (
              <HeadCell
                key={column.name}
                column={column}
                width={column.share === undefined ? undefined : `${(100 * column.share) / whole}%`}
                sorting={sorting}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={idOf(row)} data-selected={selection?.has(idOf(row)) === true ? true : undefined}>
              {selection !== undefined && (
                <td className="select">
                  <SelectBox
                    label={`Select ${selection.nameOf(row)}`}
                    isSelected={selection.has(idOf(row))}
                    onChange={(isSelected) => selection.set([idOf(row)], isSelected)}
                  />
                </td>
              )}
              {shown.map((column) => (
                <td
                  key={column.name}
                  className={classOf(column)}
                  data-name={column.kind === 'number' || column.isNamed === true ? column.name : undefined}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {foot !== undefined && <tfoot>{foot}</tfoot>}
      </table>
    </div>
  );
}
