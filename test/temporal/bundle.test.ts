import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';

/** Returns a module and all of ours that it imports for more than their types. */
function modulesFrom(file: string, seen = new Map<string, string>()): Map<string, string> {
  if (seen.has(file)) return seen;
  const text = readFileSync(file, 'utf8');
  seen.set(file, text);
  for (const [, isType, target = ''] of text.matchAll(
    /^(?:import|export) (type )?[^;]*? from '(\.[^']+)';/gm,
  )) {
    if (isType === undefined) modulesFrom(path.resolve(path.dirname(file), target), seen);
  }
  return seen;
}

/** A variable at the top level of a module, a static field, or an import for its effects. */
const VARIABLE = /^(?:(?:export )?(?:let|var) |\s+static |import ')[^\n]*/gm;
/** A constant at the top level, with the first word of its value. */
const CONSTANT = /^(?:export )?const [^\n]*? = (?<value>[^\s(<{[]+|[{[(]\S*)[^\n]*/gm;
/** What such a value may be: a literal that is not empty, or what the SDK makes of options and names. */
const WITHOUT_STATE =
  /^(?:'|`|\d|true|false|null|\[(?!\])|\{(?!\})|(?:proxyActivities|proxyLocalActivities|defineSignal|defineQuery|defineUpdate)$)/;

const stateOf = (text: string): string[] => [
  ...(text.match(VARIABLE) ?? []),
  ...[...text.matchAll(CONSTANT)]
    .filter(({ groups }) => !WITHOUT_STATE.test(groups?.['value'] ?? ''))
    .map(([line]) => line),
];

test.each([
  'let count = 0;',
  'const seen = new Map<string, number>([]);',
  'const fallback = new Fallback();',
  'const next = counter();',
  'const waiting: (() => void)[] = [];',
  'const state = {};',
  '  static count = 0;',
  "import './effects.ts';",
])('is state: %s', (line) => {
  expect(stateOf(line)).toEqual([line]);
});

test('the modules of workflows hold no state at their top level, because all workflows of a worker share them', () => {
  const modules = modulesFrom(path.join(projectRoot, 'workflows/index.ts'));
  expect([...modules.keys()].map((file) => path.relative(projectRoot, file))).toEqual(
    expect.arrayContaining(['workflows/delivery.ts', 'workflows/fallback.ts', 'src/domain/signals.ts']),
  );
  const found = [...modules].flatMap(([file, text]) =>
    stateOf(text).map((line) => `${path.relative(projectRoot, file)}: ${line}`),
  );
  expect(found).toEqual([]);
});
