import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import pg from 'pg';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { findPayoutRequest, openPayoutRequest, settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { matureOverdue } from '../../src/db/maturing.ts';
import { migrate } from '../../src/db/migrate.ts';
import { newId } from '../../src/db/new-id.ts';
import { storePayoutCsv } from '../../src/db/payout-csv.ts';
import { connect } from '../../src/db/sql.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { ratio, report } from './report.ts';
import { insertApp } from './insert-app.ts';
import { median } from './support.ts';
import { insertDueCommissions } from './due-commissions.ts';

/**
 * `npm run bench -- export`: pays due commissions of a creator with the statement of the service, next to one that only updates
 * as many rows of a table with the same indexes, without foreign keys and triggers. Each round has a creator of its own. Then it
 * matures due commissions as the sweep does, next to a bare update, in as many rounds.
 */
const ROWS = Number(process.env['BENCH_ROWS'] ?? 50_000);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
const MIB = 2 ** 20;

const print = (line: string) => process.stdout.write(`${line}\n`);

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const server = await startEmbeddedPostgres({ dataDir, durable: true });
const client = new pg.Client(server.ownerUrl);
await client.connect();
await client.query(`alter system set max_wal_size = '4GB'`);
await client.query(`select pg_reload_conf()`);
await migrate(server.ownerUrl, () => {});
const owner = connect({ url: server.ownerUrl, max: 1, statementTimeoutMs: 0, patienceMs: 600_000 });
const sql = connect({ url: server.url, max: 2, statementTimeoutMs: 0, patienceMs: 600_000 });

const { id: accountId } = await createAccount(sql, 'Bench');
const { id: keyId } = await createAccountKey(sql, accountId, ['payout']);
const appId = await insertApp(client, accountId);
await client.query(
  `insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
   values ($1, $2, 'stripe', 'production', 'never opened', 'bench', 1)`,
  [newId('secret'), appId],
);
await client.query('create schema plain');
await client.query(
  'create table plain.commissions (like public.commissions including defaults including indexes)',
);

/** Creates a creator with due commissions, and their copies in the plain table. */
async function createCreator(round: number) {
  const [affiliateId, linkId, attributionId] = [newId('affiliate'), newId('link'), newId('attribution')];
  const customerUserId = `user-${round}`;
  await client.query(`insert into affiliates (id, app_id, name) values ($1, $2, 'Creator')`, [
    affiliateId,
    appId,
  ]);
  await client.query(
    `insert into links (id, app_id, affiliate_id, slug, destination_url) values ($1, $2, $3, $4, 'https://example.com')`,
    [linkId, appId, affiliateId, `bench-${round}`],
  );
  await client.query(
    `insert into attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at)
     values ($1, $2, $3, $4, $5, 'code', now(), now())`,
    [attributionId, appId, `device-${round}`, affiliateId, linkId],
  );
  await client.query(
    `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, healed_at)
     values ($1, $2, $3, $4, now(), now())`,
    [newId('binding'), appId, customerUserId, attributionId],
  );
  await insertDueCommissions(owner, { appId, customerUserId, status: 'pending' }, ROWS, round * ROWS);
  await client.query('insert into plain.commissions select * from commissions where affiliate_id = $1', [
    affiliateId,
  ]);
  await client.query('vacuum analyze');
  await client.query('checkpoint');
  return affiliateId;
}

/** Returns how long some work took, ms. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

const figures = { bare: [] as number[], settled: [] as number[], csv: [] as number[] };
let mostMemory = 0;
let longestBlock = 0;
for (let round = 0; round < ROUNDS; round += 1) {
  const affiliateId = await createCreator(round);
  const bare = await timed(async () => {
    const { rowCount } = await client.query(
      `update plain.commissions set status = 'paid', matured_at = now(), paid_at = now(), payout_id = $2
        where affiliate_id = $1 and status <> 'paid' and due_at <= now() returning id, amount_cents`,
      [affiliateId, newId('payout')],
    );
    if (rowCount !== ROWS) throw new Error(`${rowCount} rows instead of ${ROWS}`);
  });
  const request = await openPayoutRequest(sql, {
    id: newId('payoutRequest'),
    appId,
    affiliateId,
    accountId,
    keyId,
    idempotencyKey: null,
    expectedTotalCents: null,
    validForMs: 600_000,
  });
  if (request === undefined || request === 'key_reused') throw new Error('the request was refused');
  globalThis.gc?.();
  const idle = process.memoryUsage().rss;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const sampling = setInterval(() => {
    mostMemory = Math.max(mostMemory, process.memoryUsage().rss - idle);
  }, 5);
  const settled = await timed(async () => await settlePayoutRequest(sql, request.id, ROWS));
  const payoutId = (await findPayoutRequest(sql, request.id))?.payoutId;
  if (!payoutId) throw new Error('nothing was paid');
  const csv = await timed(async () => await storePayoutCsv(sql, appId, payoutId));
  clearInterval(sampling);
  delay.disable();
  longestBlock = Math.max(longestBlock, delay.max / 1e6);
  figures.bare.push(bare);
  figures.settled.push(settled);
  figures.csv.push(csv);
  print(
    `round ${round + 1}: bare update ${bare.toFixed(0)} ms, settlement ${settled.toFixed(0)} ms (× ${(settled / bare).toFixed(2)}), ` +
      `CSV rendered and stored in ${csv.toFixed(0)} ms`,
  );
}
const ratios = figures.settled.map((ms, round) => ms / (figures.bare[round] ?? Number.NaN));
const times = median(ratios);
report({
  path: `export of ${ROWS} due commissions`,
  comparedWith: 'a bare update of as many rows',
  measured: `${median(figures.settled).toFixed(0)} ms against ${median(figures.bare).toFixed(0)} ms: ${ratio(times)}; CSV in ${median(figures.csv).toFixed(0)} ms`,
  target: 'at most 2',
  isReached: times <= 2,
});
report({
  path: `export of ${ROWS} due commissions, process`,
  comparedWith: 'idle',
  measured: `${(mostMemory / MIB).toFixed(0)} MiB more, event loop blocked for at most ${longestBlock.toFixed(0)} ms`,
  target: 'at most 30 MiB and 20 ms',
  isReached: mostMemory <= 30 * MIB && longestBlock <= 20,
});
// The sweep matures due commissions page by page, as the service does. One round alone is worth little: the disk decides it.
const SWEEP_PAGE = 1_000;
/** Runs pages until one is not full. Returns the rows per second. */
async function rowsPerSecond(page: () => Promise<number>): Promise<number> {
  let rows = 0;
  const ms = await timed(async () => {
    for (let last = SWEEP_PAGE; last === SWEEP_PAGE; rows += last) last = await page();
  });
  return (rows * 1000) / ms;
}
const sweeps = { bare: [] as number[], swept: [] as number[] };
const maturesBare = async () => {
  const { rowCount } = await client.query(
    `update plain.commissions set status = 'matured', matured_at = now()
      where id in (select id from plain.commissions where status = 'pending' and due_at <= now() order by due_at limit ${SWEEP_PAGE})`,
  );
  return rowCount ?? 0;
};
for (let round = 0; round < ROUNDS; round += 1) {
  await createCreator(ROUNDS + round);
  sweeps.bare.push(await rowsPerSecond(maturesBare));
  sweeps.swept.push(await rowsPerSecond(async () => await matureOverdue(sql, SWEEP_PAGE)));
}
report({
  path: `sweep of ${ROWS} due commissions in pages of ${SWEEP_PAGE}`,
  comparedWith: 'a bare update of as many rows',
  measured:
    `${median(sweeps.swept).toFixed(0)} rows/s against ${median(sweeps.bare).toFixed(0)} rows/s: ` +
    ratio(median(sweeps.swept.map((rate, round) => rate / (sweeps.bare[round] ?? Number.NaN)))),
  target: 'at least 50,000 rows/s',
  isReached: median(sweeps.swept) >= 50_000,
});
await sql.close();
await owner.close();
await client.end();
await server.stop();
await rm(dataDir, { recursive: true, force: true });
