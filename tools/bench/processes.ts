import { setTimeout as sleep } from 'node:timers/promises';
import { ratio, report } from './report.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { Stack, Subject } from './stack.ts';
import { median } from './support.ts';

/**
 * `npm run bench -- processes`: purchases to one, two and four processes of the service on one database, in turns. On one machine the
 * rate stays the same, because all share its processors: what counts is the processor time of a purchase.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 6);
const WARM_UP = Number(process.env['BENCH_WARM_UP'] ?? 600);
const IN_FLIGHT = 16;

interface Round {
  readonly perSecond: number;
  /** Of Node, the Temporal server and Postgres together, for each purchase. */
  readonly processorMs: number;
  readonly pending: number;
}

/** Returns the processor time of all servers and of these processes until now, ms. */
function usedBy(stack: Stack, subjects: readonly Subject[]): number {
  const times = subjects.map((subject) => stack.processorTime(subject));
  const { temporal = 0, postgres = 0 } = times[0] ?? {};
  return times.reduce((sum, { node }) => sum + node, temporal + postgres);
}

async function run(stack: Stack): Promise<void> {
  const databaseUrl = await stack.createDatabase('processes');
  const first = await stack.startTributary({ name: 'Tributary', databaseUrl, creators: 200, users: 200 });
  const others: Subject[] = [];
  while (others.length < 3) others.push(await stack.startSecond(first, databaseUrl));
  const all = [first, ...others];
  const measure = async (subjects: readonly Subject[]): Promise<Round> => {
    // What the others do meanwhile is part of the price: each polls for work.
    const before = usedBy(stack, all);
    const begin = performance.now();
    const { times, pending } = await sendPurchases(
      subjects,
      IN_FLIGHT,
      () => performance.now() - begin > SECONDS * 1000,
    );
    await first.settled();
    const seconds = (performance.now() - begin) / 1000;
    return {
      perSecond: times.length / seconds,
      processorMs: (usedBy(stack, all) - before) / times.length,
      pending,
    };
  };
  await sendPurchases(all, IN_FLIGHT, (sent) => sent >= WARM_UP);
  await stack.analyze(databaseUrl);
  const counts = [1, 2, 4];
  const rounds = new Map<number, Round[]>(counts.map((count) => [count, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [count, done] of rounds) done.push(await measure(all.slice(0, count)));
  }
  // The bare price of a process: what all take while nothing is sent.
  const idleBefore = usedBy(stack, all);
  await sleep(SECONDS * 1000);
  const idleMs = (usedBy(stack, all) - idleBefore) / SECONDS;
  process.stdout.write(
    `idle, ${all.length} processes and their servers: ${idleMs.toFixed(0)} ms of processor time a second\n`,
  );
  const of = (count: number, figure: keyof Round) => (rounds.get(count) ?? []).map((round) => round[figure]);
  for (const count of counts) {
    process.stdout.write(
      `${count} of 4 processes: ${median(of(count, 'perSecond')).toFixed(0)}/s, ${median(of(count, 'processorMs')).toFixed(1)} ms of processor time for each purchase, ` +
        `${of(count, 'pending').reduce((sum, pending) => sum + pending, 0)} answers without a commission\n`,
    );
  }
  const one = of(1, 'processorMs');
  for (const count of [2, 4]) {
    const times = of(count, 'processorMs');
    const value = median(times.map((time, round) => time / (one[round] ?? Number.NaN)));
    report({
      path: `purchases to ${count} processes on one database, 16 in flight, processor time of each`,
      comparedWith: 'to one of them',
      measured: `${median(times).toFixed(1)} ms against ${median(one).toFixed(1)} ms: ${ratio(value)}; ${median(of(count, 'perSecond')).toFixed(0)}/s against ${median(of(1, 'perSecond')).toFixed(0)}/s`,
      target: 'at most 1.05',
      isReached: value <= 1.05,
    });
  }
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
