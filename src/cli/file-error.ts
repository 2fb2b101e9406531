import { errorCode } from '../embedded/error-text.ts';
import { CommandFailedError } from './output.ts';

/** Whether an error names a file that could not be opened. */
export const isFileError = (error: unknown): boolean =>
  errorCode(error) !== undefined && typeof error === 'object' && error !== null && 'path' in error;

/** Returns what the operator reads about a file that can't be used. */
export function cannotUse(path: string, what: 'read' | 'written', error: unknown): CommandFailedError {
  const code = errorCode(error);
  return new CommandFailedError(
    code === 'EEXIST'
      ? `${path} already exists. Choose another name.`
      : `${path} can't be ${what} (${code}). Check the name and the permissions.`,
  );
}
