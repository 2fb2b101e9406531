/** A file that can't be compared. The message says why, then what to do. */
export class ExportFileError extends Error {
  override readonly name = 'ExportFileError';
}

/** Returns an error of a file as an `ExportFileError`. */
export function fileError(path: string, error: unknown): ExportFileError {
  if (error instanceof ExportFileError) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) {
    return new ExportFileError(`${path} is a damaged or incomplete gzip file. Download it again.`);
  }
  if (code === 'CSV_RECORD_INCONSISTENT_COLUMNS') {
    const { lines } = error as { lines?: number };
    return new ExportFileError(
      `${path} has another number of cells at line ${lines ?? '?'} than its header has columns: the file is incomplete or was edited. Download it again.`,
    );
  }
  if (code.startsWith('CSV_')) {
    const { lines } = error as { lines?: number };
    const where = lines === undefined ? '' : ` at line ${lines}`;
    return new ExportFileError(
      `${path} is not valid CSV${where} (${code}). Download it again, and do not edit it in between.`,
    );
  }
  return new ExportFileError(`${path} can't be read (${code === '' ? message : code}).`);
}
