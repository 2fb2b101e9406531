// Runs the XCTest classes, lets play-remote.mjs play against them, and reports each scenario and story.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isPlayable, readScenarios } from '../../conformance/play.mjs';
import { STORIES } from '../../conformance/stories.mjs';
import { buildTests, runXCTest } from './swift.mjs';

/** What the Swift SDK can do beyond the rules for every SDK. */
const ABILITIES = ['start', 'online', 'foreground', 'asyncStorage', 'deferredOnByDefault'];
const PLAYER = fileURLToPath(new URL('../../conformance/play-remote.mjs', import.meta.url));

/**
 * Starts the player behind HTTP, because the tests run where no Node may be: a GET waits for its next message, and a POST is a
 * message to it.
 */
async function startPlayer() {
  const node = spawn(process.execPath, [PLAYER, ABILITIES.join()], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: node.stdout })[Symbol.asyncIterator]();
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return response.end((await lines.next()).value);
    node.stdin.write(`${await text(request)}\n`);
    return response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      node.stdin.end();
      server.close();
      server.closeAllConnections();
    },
  };
}

let player;
let run;
before(async () => {
  await buildTests();
  player = await startPlayer();
  run = await runXCTest('TributaryTests\\.(?!EndToEnd)', { TRIBUTARY_TEST_PLAYER: player.url });
});
after(() => player?.close());

for (const { name } of [...readScenarios(), ...STORIES].filter((entry) => isPlayable(entry, ABILITIES))) {
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
