const DELIMITERS = [',', ';', '\t'] as const;

/** Returns the delimiter of the header line of a CSV: the one of comma, semicolon and tab that it has most often. */
export function delimiterOf(head: string): string {
  const [line = ''] = head.split(/\r?\n/, 1);
  const count = (delimiter: string) => line.split(delimiter).length;
  const [most = ','] = DELIMITERS.toSorted((a, b) => count(b) - count(a));
  return most;
}
