import { Button } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { formatCount } from '../format.ts';

/** Which rows of a list are selected, by their id. */
export interface Selection<T> {
  readonly has: (id: string) => boolean;
  /** Selects rows, or no longer. */
  readonly set: (ids: readonly string[], isSelected: boolean) => void;
  readonly clear: () => void;
  /** What a row is called, for screen readers. */
  readonly nameOf: (row: T) => string;
}

/** Returns a selection of rows. Rows that a list no longer shows are kept, and count again when it shows them. */
export function useSelection<T>(nameOf: (row: T) => string): Selection<T> {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  return {
    has: (id) => ids.has(id),
    set: (changed, isSelected) =>
      setIds((before) => {
        const next = new Set(before);
        for (const id of changed) {
          if (isSelected) next.add(id);
          else next.delete(id);
        }
        return next;
      }),
    clear: () => setIds(new Set()),
    nameOf,
  };
}

/** The checkbox of a row, or of all rows that are shown. Its label fills the cell, so that a press beside it opens no row. */
export function SelectBox({
  label,
  isSelected,
  isPartly = false,
  onChange,
}: {
  readonly label: string;
  readonly isSelected: boolean;
  /** Whether some rows are selected, and not all. */
  readonly isPartly?: boolean;
  readonly onChange: (isSelected: boolean) => void;
}) {
  return (
    <label className="select-box">
      <input
        type="checkbox"
        aria-label={label}
        checked={isSelected}
        ref={(box) => {
          if (box !== null) box.indeterminate = isPartly;
        }}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </label>
  );
}

/** What can be done with the rows that are selected, below the list and always in sight. Nothing while none is. */
export function BulkBar<T>({
  rows,
  idOf,
  selection,
  children,
}: {
  /** The rows that are shown. */
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  readonly selection: Selection<T>;
  readonly children: (selected: readonly T[]) => ReactNode;
}) {
  const selected = rows.filter((row) => selection.has(idOf(row)));
  if (selected.length === 0) return null;
  return (
    <section className="bulk-bar" aria-label="Selected rows">
      <span role="status">{formatCount(selected.length)} selected</span>
      {children(selected)}
      {selected.length < rows.length && (
        <Button variant="subtle" size="xs" onClick={() => selection.set(rows.map(idOf), true)}>
          Select all {formatCount(rows.length)}
        </Button>
      )}
      <Button variant="subtle" size="xs" onClick={selection.clear}>
        Clear the selection
      </Button>
    </section>
  );
}
