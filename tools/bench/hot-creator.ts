import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { IS_QUICK, ratio, report } from './report.ts';
import { createBenchApp, percentile, postPurchase, startBenchServer } from './support.ts';

/** `npm run bench -- hot-creator`: purchases of one creator's users, without and with clicks on that creator's link. */
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 20);
const PURCHASES_IN_FLIGHT = 16;
const CLICKS_IN_FLIGHT = 16;
const USERS = 40;
/** How much slower the slowest percent of webhooks may become because of the clicks. */
const MOST_RATIO = 3;

const { service, base, key, stop } = await startBenchServer();
const { appId, stripeSecret, slugs, users } = await createBenchApp(base, key, { creators: 1, users: USERS });

async function deadlocks(): Promise<number> {
  // Statistics of the sessions arrive within a second.
  await sleep(1_500);
  const row = await service.sql.one<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`;
  return row.deadlocks;
}

/** Runs `call` again and again for some seconds, `inFlight` at a time. Returns how many there were. */
async function repeat(
  seconds: number,
  inFlight: number,
  call: (n: number) => Promise<void>,
): Promise<number> {
  const endsAt = Date.now() + seconds * 1000;
  let n = 0;
  const worker = async () => {
    while (Date.now() < endsAt) {
      n += 1;
      await call(n);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return n;
}

let failed = 0;

async function click(): Promise<void> {
  const response = await fetch(`${base}/clicks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ customerAppId: appId, slug: slugs[0], claimToken: randomUUID() }),
  });
  await response.arrayBuffer();
  if (!response.ok) failed += 1;
}

interface Figures {
  readonly purchases: number;
  readonly pending: number;
  /** Webhooks and clicks that got an error. */
  readonly failed: number;
  readonly clicks: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly deadlocks: number;
}

async function run(seconds: number, clicksInFlight: number): Promise<Figures> {
  const before = await deadlocks();
  const times: number[] = [];
  let pending = 0;
  failed = 0;
  const [purchases, clicks] = await Promise.all([
    repeat(seconds, PURCHASES_IN_FLIGHT, async (n) => {
      const sent = performance.now();
      const { status, body } = await postPurchase(
        `${base}/webhooks/stripe/${appId}`,
        stripeSecret,
        users[n % users.length] ?? '',
      );
      times.push(performance.now() - sent);
      if (status !== 200) failed += 1;
      else if (body.pending) pending += 1;
    }),
    repeat(seconds, clicksInFlight, click),
  ]);
  times.sort((a, b) => a - b);
  return {
    purchases,
    pending,
    failed,
    clicks,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    deadlocks: (await deadlocks()) - before,
  };
}

function print(name: string, figures: Figures): void {
  const { purchases, pending, clicks, p50Ms, p99Ms } = figures;
  process.stdout.write(
    `${name.padEnd(15)} ${purchases} purchases (${pending} pending), ${clicks} clicks in ${SECONDS} s; ` +
      `webhook p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms; deadlocks ${figures.deadlocks}, ${figures.failed} errors\n`,
  );
}

await run(Math.min(SECONDS, 3), CLICKS_IN_FLIGHT);
const without = await run(SECONDS, 0);
print('without clicks', without);
const withClicks = await run(SECONDS, CLICKS_IN_FLIGHT);
print('with clicks', withClicks);
const times = withClicks.p99Ms / without.p99Ms;
report({
  path: 'webhooks of one creator beside clicks on its link, p99',
  comparedWith: 'without clicks',
  measured: `${withClicks.p99Ms.toFixed(0)} ms against ${without.p99Ms.toFixed(0)} ms: ${ratio(times)}`,
  target: `at most ${MOST_RATIO}`,
  isReached: times <= MOST_RATIO,
});
if (without.deadlocks + withClicks.deadlocks + withClicks.failed > 0) process.exitCode = 1;
if (times > MOST_RATIO && !IS_QUICK) process.exitCode = 1;
await stop();
