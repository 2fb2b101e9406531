import type { ExportRow } from '../providers/shared/export.ts';

/** A row with its line in the file, from 1. The objects of a JSON list are counted instead. */
export interface NumberedRow {
  readonly line: number;
  readonly values: ExportRow;
}
