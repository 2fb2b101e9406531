import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';
import { projectRoot } from '../../src/config/project-root.ts';

/** The text of a file of the project. */
export const textOf = (file: string): string => readFileSync(path.join(projectRoot, file), 'utf8');

/** A row of a table in a page, with the tests that it names. */
export interface PageRow {
  /** The heading that stands above it. */
  readonly section: string;
  readonly cells: readonly string[];
  /** A file, and words in quotes that have to stand in it. */
  readonly tests: readonly (readonly [file: string, words: string])[];
  /** Files that are named, whether or not words follow. */
  readonly files: readonly string[];
}

const SEPARATOR = /^\|[\s|:-]+\|$/;

/**
 * The rows of all tables in a page. A row names a test file in backticks and titles in double quotes after it; a file in
 * the head of a table counts for all of its rows. A bar inside a cell is written `\|`.
 */
export function tableRowsOf(markdown: string): PageRow[] {
  const rows: PageRow[] = [];
  const lines = markdown.split('\n');
  let section = '';
  let fileOfTable: string | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('#')) {
      section = line.replace(/^#+ /, '');
      fileOfTable = undefined;
    }
    if (!line.startsWith('|') || SEPARATOR.test(line)) continue;
    if (SEPARATOR.test(lines[index + 1] ?? '')) {
      fileOfTable = /`(test\/[^`]+)`/.exec(line)?.[1];
      continue;
    }
    const cells = line
      .slice(1, line.lastIndexOf('|'))
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|'));
    const tests: [string, string][] = [];
    const files: string[] = [];
    let file = fileOfTable;
    for (const [, nextFile, words] of cells.join(' | ').matchAll(/`(test\/[\w./-]+)`|"([^"]+)"/g)) {
      if (nextFile !== undefined) files.push((file = nextFile));
      else if (file !== undefined && words !== undefined) tests.push([file, words]);
    }
    rows.push({ section, cells, tests, files });
  }
  return rows;
}

interface Node {
  readonly type?: string;
  readonly [field: string]: unknown;
}

/** What is called in `test(…)`, `test.each(…)(…)` and `describe.each(…)(…)`: the name at the very left. */
function rootName(callee: Node | undefined): unknown {
  switch (callee?.type) {
    case 'Identifier':
      return callee['value'];
    case 'MemberExpression':
      return rootName(callee['object'] as Node);
    case 'CallExpression':
      return rootName(callee['callee'] as Node);
    default:
      return undefined;
  }
}

function titleOf(call: Node): string | undefined {
  const [first] = call['arguments'] as readonly { readonly expression: Node }[];
  switch (first?.expression.type) {
    case 'StringLiteral':
      return first.expression['value'] as string;
    case 'TemplateLiteral':
      return (first.expression['quasis'] as readonly { readonly raw: string }[])
        .map(({ raw }) => raw)
        .join('${…}');
    default:
      return undefined;
  }
}

/** The titles of all tests and groups of tests in a file, as they are written there. */
export function titlesIn(file: string): ReadonlySet<string> {
  const titles = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (typeof value !== 'object' || value === null) return;
    const node = value as Node;
    if (node.type === 'CallExpression') {
      const title = ['test', 'describe'].includes(String(rootName(node['callee'] as Node)))
        ? titleOf(node)
        : undefined;
      if (title !== undefined) titles.add(title);
    }
    Object.values(node).forEach(visit);
  };
  visit(parseSync(textOf(file), { syntax: 'typescript' }));
  return titles;
}
