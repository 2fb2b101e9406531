const DELIMITERS = [',', ';', '\t'] as const;

/** More delimiters than a header line has. */
const MOST_COUNTED = 10_000;

/** Counts a delimiter in a text, at most to `most`. */
export function countDelimiters(text: string, delimiter: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf(delimiter); at !== -1 && count < most; at = text.indexOf(delimiter, at + 1))
    count += 1;
  return count;
}

/** Returns the delimiter of the header line of a CSV: the one of comma, semicolon and tab that it has most often. */
export function delimiterOf(head: string): string {
  const [line = ''] = head.split('\n', 1);
  const count = (delimiter: string) => countDelimiters(line, delimiter, MOST_COUNTED);
  return DELIMITERS.reduce((most, delimiter) => (count(delimiter) > count(most) ? delimiter : most));
}
