/** Returns the code of a Node system error, such as `ENOENT`; undefined when it has none. */
export function errorCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}

/** Returns the text of an error for the operator: the last line that a failed program wrote, else the message. */
export function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const output = 'stderr' in error && typeof error.stderr === 'string' ? lastLine(error.stderr) : undefined;
  return output ?? ('message' in error ? String(error.message) : 'unknown error');
}

/** Returns the last line of a trimmed text; undefined when it is blank. */
export function lastLine(text: string | undefined): string | undefined {
  return text?.trim().split('\n').at(-1)?.trim() || undefined;
}
