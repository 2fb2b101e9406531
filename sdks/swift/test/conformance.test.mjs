// Runs the XCTest classes against the scripted server, and reports each scenario.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isPlayable, readScenarios } from '../../conformance/play.mjs';
import { startServer } from '../../conformance/server.mjs';
import { buildTests, runXCTest } from './swift.mjs';

/** Those of Driver.swift. */
const ABILITIES = ['start', 'online', 'foreground', 'asyncStorage', 'deferredOnByDefault'];

let server;
let run;
before(async () => {
  await buildTests();
  server = await startServer();
  run = await runXCTest('TributaryTests\\.(?!EndToEnd)', { TRIBUTARY_TEST_SERVER: server.url });
});
after(() => server?.close());

for (const scenario of readScenarios()) {
  const { name } = scenario;
  if (!isPlayable(scenario, ABILITIES)) continue;
  test(name, () => {
    const failure = run.output.split('\n').find((line) => line.startsWith(`scenario failed: ${name}:`));
    assert.ok(run.output.includes(`scenario passed: ${name}\n`), failure ?? run.output.slice(-4000));
  });
}

test('every XCTest passes', () => {
  assert.equal(run.code, 0, run.output.slice(-8000));
  for (const line of run.output.split('\n'))
    if (/scenarios passed\.$|Executed \d+ tests/.test(line)) console.log(line.trim());
});
