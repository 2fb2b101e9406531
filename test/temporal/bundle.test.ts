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

/** A variable, or something empty that is filled later, at the top level of a module. */
const STATE =
  /^(?:export )?(?:let|var) .*|^(?:export )?const \w+[^=]* = (?:new (?:Map|Set|WeakMap)[^([]*\(\)|\[\]|\{\});/gm;

test('the modules of workflows hold no state at their top level, because all workflows of a worker share them', () => {
  const modules = modulesFrom(path.join(projectRoot, 'workflows/index.ts'));
  expect(modules.size).toBeGreaterThan(15);
  const found = [...modules].flatMap(([file, text]) =>
    (text.match(STATE) ?? []).map((line) => `${path.relative(projectRoot, file)}: ${line}`),
  );
  expect(found).toEqual([]);
  expect('let count = 0;'.match(STATE)).not.toBeNull();
  expect('const seen = new Map<string, number>();'.match(STATE)).not.toBeNull();
});
