/** Returns the records of a CSV with their ends. A quoted cell may have line breaks. */
export function* recordsOf(text: string): Generator<string> {
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '"') isQuoted = !isQuoted;
    else if (text[at] === '\n' && !isQuoted) {
      yield text.slice(start, at + 1);
      start = at + 1;
    }
  }
  if (start < text.length) yield text.slice(start);
}

/** Returns the records of one CSV after those of another one of the same columns, without its header. Throws if its columns differ. */
export function appendCsv(csv: string, next: string): string {
  const [header = ''] = recordsOf(next);
  if (csv !== '' && !csv.startsWith(header)) throw new Error('The files have different columns.');
  return csv === '' ? next : csv + next.slice(header.length);
}
