/** The code that Node gives an error of the system (`ENOENT`), if it has one. */
export function errorCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}

/** What to tell a person about an error: the last thing a failed program wrote, else the error's message. */
export function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const written = 'stderr' in error && typeof error.stderr === 'string' ? lastLine(error.stderr) : undefined;
  return written ?? ('message' in error ? String(error.message) : 'unknown error');
}

/** The last line of a text that is not blank. */
export function lastLine(text: string | undefined): string | undefined {
  return text?.trim().split('\n').at(-1)?.trim() || undefined;
}
