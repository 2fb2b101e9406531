import { readFileSync } from 'node:fs';
import { ratio, report } from './report.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { Stack } from './stack.ts';
import { percentile } from './support.ts';

/**
 * `npm run bench -- steady`: five minutes of purchases on a new database, or an hour with `BENCH_MINUTES=60 BENCH_WINDOWS=12`. The plans
 * of a connection are made while the tables are empty, so a plan that only fits empty tables shows here as a rising answer time.
 */
const MINUTES = Number(process.env['BENCH_MINUTES'] ?? 5);
/** Windows of the run. The times of the others are compared with those of the first one. */
const WINDOWS = Number(process.env['BENCH_WINDOWS'] ?? 10);
/** The window after which a process should no longer grow: the one that ends with minute ten, or the first one of a run shorter than twenty. */
const GROWN = MINUTES >= 20 ? Math.ceil((10 * WINDOWS) / MINUTES) - 1 : 0;
const IN_FLIGHT = 8;
/** Until then the service compiles its code and connects. */
const WARM_UP_MS = Number(process.env['BENCH_WARM_UP_MS'] ?? 5_000);
const MIB = 2 ** 20;

/** Returns the resident memory of a process, bytes. */
function memoryOf(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

async function run(stack: Stack): Promise<void> {
  const databaseUrl = await stack.createDatabase('steady');
  const subject = await stack.startTributary({ name: 'Tributary', databaseUrl, creators: 200, users: 200 });
  const pid = subject.process.pid ?? 0;
  const warmUntil = performance.now() + WARM_UP_MS;
  await sendPurchases([subject], 1, () => performance.now() > warmUntil);
  const windows: { readonly p50Ms: number; readonly perSecond: number; readonly memory: number }[] = [];
  for (let window = 0; window < WINDOWS; window += 1) {
    const from = performance.now();
    const seconds = (MINUTES * 60) / WINDOWS;
    const { times } = await sendPurchases(
      [subject],
      IN_FLIGHT,
      () => performance.now() - from > seconds * 1000,
    );
    const sorted = times.toSorted((a, b) => a - b);
    const figures = {
      p50Ms: percentile(sorted, 0.5),
      perSecond: times.length / seconds,
      memory: memoryOf(pid),
    };
    windows.push(figures);
    process.stdout.write(
      `${((window + 1) * seconds).toFixed(0)} s: p50 ${figures.p50Ms.toFixed(1)} ms, ${figures.perSecond.toFixed(0)}/s, ` +
        `${(figures.memory / MIB).toFixed(0)} MiB\n`,
    );
  }
  const [first] = windows;
  const grown = windows[GROWN];
  if (first === undefined || grown === undefined) return;
  const worst = Math.max(...windows.map(({ p50Ms }) => p50Ms)) / first.p50Ms;
  const memory = Math.max(...windows.slice(GROWN).map((window) => window.memory)) / grown.memory;
  report({
    path: `${MINUTES} minutes of steady purchases on a new database, p50`,
    comparedWith: 'its own first window',
    measured: `at most ${ratio(worst)} of ${first.p50Ms.toFixed(1)} ms`,
    target: 'at most 1.2',
    isReached: worst <= 1.2,
  });
  report({
    path: `${MINUTES} minutes of steady purchases on a new database, memory`,
    comparedWith:
      GROWN === 0
        ? 'its own first window'
        : `its own after ${Math.round(((GROWN + 1) * MINUTES) / WINDOWS)} minutes`,
    measured: `at most ${ratio(memory)} of ${(grown.memory / MIB).toFixed(0)} MiB`,
    target: 'at most 1.1',
    isReached: memory <= 1.1,
  });
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
