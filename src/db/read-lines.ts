import { StringDecoder } from 'node:string_decoder';

/**
 * Yields the lines of a text stream, without their `\n`. `readline` also splits at other separators, which JSON has unescaped in
 * texts. Throws `incomplete()` where the last line has no end.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  incomplete: () => Error,
): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw incomplete();
}
