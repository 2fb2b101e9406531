import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { report } from './report.ts';
import { median } from './support.ts';

/**
 * `npm run bench -- start-up`: how long the built service takes until it is ready, on a data folder that exists, and how long
 * the demo takes on a new one. The build is not counted.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);

/** Starts a program of the build. Returns how long it took until it printed a text, or ended, ms. */
async function timed(file: string, dataDir: string, until: RegExp | null): Promise<number> {
  const begin = performance.now();
  const child = spawn(process.execPath, [path.join(projectRoot, 'dist', file)], {
    cwd: projectRoot,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
      DATA_DIR: dataDir,
      PORT: '0',
      RATES_URL: 'off',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let text = '';
  const printed = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (until?.test(text)) resolve();
      });
    }
  });
  const first = await Promise.race([printed.then(() => 'printed' as const), ended]);
  const elapsed = performance.now() - begin;
  if (first === 'printed') {
    child.kill('SIGTERM');
    await ended;
  } else if (first[0] !== 0 || until !== null) {
    throw new Error(`${file} ended with ${first[0]}: ${text}`);
  }
  return elapsed;
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const READY = /is up at/;
try {
  const cold = await timed('src/main.js', dataDir, READY);
  const warm: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) warm.push(await timed('src/main.js', dataDir, READY));
  const demo = await timed('tools/demo.js', path.join(dataDir, 'demo'), null);
  report({
    path: 'start-up, warm, to ready',
    comparedWith: '',
    measured: `${(median(warm) / 1000).toFixed(1)} s; ${(cold / 1000).toFixed(1)} s with a new data folder`,
    target: 'at most 3 s',
    isReached: median(warm) <= 3_000,
  });
  report({
    path: 'demo, without the build',
    comparedWith: '',
    measured: `${(demo / 1000).toFixed(1)} s`,
    target: 'at most 15 s',
    isReached: demo <= 15_000,
  });
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
