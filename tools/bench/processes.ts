import { ratio, report } from './report.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { Stack, Subject } from './stack.ts';
import { median } from './support.ts';

/**
 * `npm run bench -- two-processes`: purchases to one process of the service, and to two on the same database, in turns. On one
 * machine the total stays the same: both share its processors.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 6);
const WARM_UP = Number(process.env['BENCH_WARM_UP'] ?? 300);
const IN_FLIGHT = 16;

async function run(stack: Stack): Promise<void> {
  const databaseUrl = await stack.createDatabase('two_processes');
  const first = await stack.startTributary({ name: 'Tributary', databaseUrl, creators: 200, users: 200 });
  const second = await stack.startSecond(first, databaseUrl);
  const perSecond = async (subjects: readonly Subject[]) => {
    const begin = performance.now();
    const { times, pending } = await sendPurchases(
      subjects,
      IN_FLIGHT,
      () => performance.now() - begin > SECONDS * 1000,
    );
    await first.settled();
    return { rate: times.length / ((performance.now() - begin) / 1000), pending };
  };
  await sendPurchases([first, second], IN_FLIGHT, (sent) => sent >= WARM_UP);
  await stack.analyze(databaseUrl);
  const rates = { one: [] as number[], two: [] as number[] };
  let pending = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const one = await perSecond([first]);
    const two = await perSecond([first, second]);
    rates.one.push(one.rate);
    rates.two.push(two.rate);
    pending += two.pending;
  }
  const value = median(rates.two.map((rate, round) => rate / (rates.one[round] ?? Number.NaN)));
  report({
    path: 'two processes on one database, 16 in flight',
    comparedWith: 'one process',
    measured: `${median(rates.two).toFixed(0)}/s against ${median(rates.one).toFixed(0)}/s: ${ratio(value)}; ${pending} answers without a commission`,
    target: 'at least 0.9',
    isReached: value >= 0.9,
  });
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
