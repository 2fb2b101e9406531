import { expect, test } from '@jest/globals';
import { FAULT_KINDS, inWords, KINDS, kindsOfRun, LONG_RUN_MS } from '../../tools/chaos/fault-kinds.ts';
import { textOf } from '../support/text-of.ts';

test('docs/reliability.md lists every fault that a run injects, with what the service says meanwhile', () => {
  const rows = textOf('docs/reliability.md')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const stated = rows.flatMap(([, name, , says]) =>
    FAULT_KINDS.some((kind) => kind === name) ? [[name, says]] : [],
  );
  expect(stated).toEqual(FAULT_KINDS.map((kind) => [kind, inWords(KINDS[kind].says)]));
});

test('a run of five minutes tries every kind of fault, a shorter one only those that need nothing besides', () => {
  expect(kindsOfRun(LONG_RUN_MS)).toEqual(FAULT_KINDS);
  const short = kindsOfRun(LONG_RUN_MS - 1);
  expect(short).toContain('service killed');
  expect(short).not.toContain('disk full');
});
