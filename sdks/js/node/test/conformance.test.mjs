import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isPlayable, play, readScenarios } from '../../../conformance/play.mjs';
import { startServer } from '../../../conformance/server.mjs';
import { createTributary } from '../dist/index.js';
import { ABILITIES, createDriver } from './driver.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server.close());

for (const scenario of readScenarios().filter((candidate) => isPlayable(candidate, ABILITIES))) {
  test(scenario.name, async () => {
    await play(scenario, { server, driver: createDriver(createTributary) });
  });
}

test('every rule has a scenario', () => {
  const proven = new Set(readScenarios().flatMap(({ rules }) => rules));
  assert.deepEqual(
    [...proven].toSorted((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  );
});
