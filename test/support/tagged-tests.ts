import { readdirSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';
import { projectRoot } from '../../src/config/project-root.ts';
import { textOf } from './text-of.ts';

/** A test, or a group of tests, under at least one `// @promise` tag. */
export interface TaggedTest {
  readonly file: string;
  /** The title as written in the source, with `%s` and `${…}` where values are inserted. */
  readonly title: string;
  /** The ids of the promises that the tags name. */
  readonly promises: readonly string[];
}

interface TaggedFile {
  readonly tests: readonly TaggedTest[];
  /** Tags that are not directly above a test, each as `file:line`. */
  readonly misplaced: readonly string[];
}

interface Node {
  readonly type?: string;
  readonly span?: { readonly start: number };
  readonly [field: string]: unknown;
}

const TAG = /^\s*\/\/ @promise (?<ids>[a-z\d-]+(?:, [a-z\d-]+)*)$/;

/** Returns the name that a call such as `test(…)`, `test.each(…)(…)` or `describe.each(…)(…)` begins with. */
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

/** Returns the title of each test and group of tests, by the number of the line on which its call begins. */
function titlesByLine(text: string): ReadonlyMap<number, string> {
  // Spans count bytes from an arbitrary base. The empty statement in front reveals the base.
  const module = parseSync(`;${text}`, { syntax: 'typescript' });
  const base = module.body[0]?.span.start ?? 0;
  const bytes = Buffer.from(`;${text}`);
  const titles = new Map<number, string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (typeof value !== 'object' || value === null) return;
    const node = value as Node;
    if (
      node.type === 'CallExpression' &&
      ['test', 'describe'].includes(String(rootName(node['callee'] as Node)))
    ) {
      const title = titleOf(node);
      const before = bytes.subarray(0, (node.span?.start ?? base) - base).toString();
      if (title !== undefined) titles.set(before.split('\n').length, title);
    }
    Object.values(node).forEach(visit);
  };
  visit(module);
  return titles;
}

function readTags(file: string): TaggedFile {
  const text = textOf(file);
  if (!text.includes('@promise')) return { tests: [], misplaced: [] };
  const titles = titlesByLine(text);
  const tests: TaggedTest[] = [];
  const misplaced: string[] = [];
  let promises: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const ids = TAG.exec(line)?.groups?.['ids'];
    if (ids !== undefined) {
      promises.push(...ids.split(', '));
      continue;
    }
    const title = titles.get(index + 1);
    if (title !== undefined && promises.length > 0) tests.push({ file, title, promises });
    else if (promises.length > 0 || line.includes('@promise')) misplaced.push(`${file}:${index + 1}`);
    promises = [];
  }
  return { tests, misplaced };
}

/** Reads the `// @promise` tags of all test files, in the order of their names. */
export function readTaggedTests(): TaggedFile {
  const files = readdirSync(path.join(projectRoot, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .toSorted()
    .map((name) => readTags(`test/${name}`));
  return {
    tests: files.flatMap(({ tests }) => tests),
    misplaced: files.flatMap(({ misplaced }) => misplaced),
  };
}
