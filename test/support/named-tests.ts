/** A reference to a test in a page. */
export type NamedTest = readonly [file: string, words: string];

const SEPARATOR = /^\|[\s|:-]+\|$/;

/**
 * Returns the tests that the tables of a page name: a test file in backticks and words in double quotes after it. A file
 * in the head of a table applies to all of its rows. A bar inside a cell is written `\|`.
 */
export function namedTestsIn(markdown: string): NamedTest[] {
  const named: NamedTest[] = [];
  const lines = markdown.split('\n');
  let fileOfTable: string | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('#')) fileOfTable = undefined;
    if (!line.startsWith('|') || SEPARATOR.test(line)) continue;
    if (SEPARATOR.test(lines[index + 1] ?? '')) {
      fileOfTable = /`(test\/[^`]+)`/.exec(line)?.[1];
      continue;
    }
    let file = fileOfTable;
    for (const [, nextFile, words] of line.replaceAll('\\|', '|').matchAll(/`(test\/[\w./-]+)`|"([^"]+)"/g)) {
      if (nextFile !== undefined) file = nextFile;
      else if (file !== undefined && words !== undefined) named.push([file, words]);
    }
  }
  return named;
}
