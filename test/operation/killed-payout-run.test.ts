import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startChildService } from '../support/child-service.ts';
import type { ChildService } from '../support/child-service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { isLong } from '../support/rounds.ts';

// `RUN_CREATORS=3000 npm run test:operation -- killed-payout-run` pays as many, with all five kills, and prints time and memory.
const wanted = process.env['RUN_CREATORS'];
const isWhole = isLong || wanted !== undefined;
const CREATORS = Number(wanted ?? (isLong ? 300 : 60));
/** How long after the approval or the restart before it the process is killed, ms. */
const KILLS = isWhole ? [50, 400, 800, 12_000, 12_000] : [400];

/** The calls that add the creators. */
const ENV = { RATE_LIMIT_ACCOUNT: '0', RATE_LIMIT_ADDRESS: '0' };

let database: TestDatabase;
let child: ChildService;
let founder: Founder;

beforeAll(async () => {
  database = await createTestDatabase();
  child = await startChildService(database.url, ENV);
  founder = await setUpFounder({ sql: database.sql, url: child.url });
});
afterAll(async () => {
  await child.kill();
  await database.drop();
});

interface Run {
  readonly id: string;
  readonly status: string;
  readonly totalCents: number;
  readonly paidCount: number;
  readonly paidCents: number;
}

async function addCreators(): Promise<void> {
  const base = `/apps/${founder.app.id}/affiliates`;
  const numbers = Array.from({ length: CREATORS }, (_, n) => n).values();
  const addNext = async () => {
    for (const n of numbers) {
      const { id } = await founder.ok<{ id: string }>('POST', base, { name: `Creator ${n}` });
      const entry = { amountCents: 100 + n, category: 'bonus', reason: 'A test', externalId: `bonus-${n}` };
      await founder.ok('POST', `${base}/${id}/entries`, entry);
    }
  };
  await Promise.all(Array.from({ length: 8 }, addNext));
}

// @promise run-killed
test('a run whose process is killed again and again pays each of its creators once, also if it is approved again', async () => {
  await addCreators();
  const path = `/apps/${founder.app.id}/payout-runs`;
  const run = await founder.ok<Run>('POST', path, { withoutPayee: 'include' });
  const approve = async () =>
    await founder.ok<Run>('POST', `${path}/${run.id}/approve`, { expectedTotalCents: run.totalCents });
  const startedAt = performance.now();
  await approve();
  for (const delayMs of KILLS) {
    await sleep(delayMs);
    await child.kill();
    child = await startChildService(database.url, ENV);
    founder.url = child.url;
    await approve();
  }
  const read = async () => await founder.ok<Run>('GET', `${path}/${run.id}`);
  await eventually('the run is settled', async () => (await read()).status === 'settled', 600_000);
  if (wanted !== undefined) await printCost(performance.now() - startedAt);
  expect(await read()).toMatchObject({ paidCount: CREATORS, paidCents: run.totalCents });
  const payouts = await database.sql.one<{ creators: number; payouts: number; cents: number }>`
    select count(distinct affiliate_id)::int as creators, count(*)::int as payouts, sum(total_cents)::float8 as cents
      from payouts where app_id = ${founder.app.id}`;
  expect(payouts).toEqual({ creators: CREATORS, payouts: CREATORS, cents: run.totalCents });
  const files = await database.sql.one<{ rows: number; cents: number }>`
    select sum(row_count)::int as rows, sum(total_cents)::float8 as cents from payout_run_files where run_id = ${run.id}`;
  expect(files).toEqual({ rows: CREATORS, cents: run.totalCents });
  await expectConsistentLedger(database.sql);
}, 1_200_000);

/** Prints how long the run took with its kills, and the most memory that the last process had. */
async function printCost(ms: number): Promise<void> {
  const [, kib = 'unknown'] =
    /VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${child.process.pid}/status`, 'utf8')) ?? [];
  process.stderr.write(
    `${CREATORS} creators: ${(ms / 1000).toFixed(0)} s, at most ${Math.round(Number(kib) / 1024)} MiB\n`,
  );
}
