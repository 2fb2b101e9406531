import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import { matureOverdue } from '../../src/db/maturing.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { createBenchApp, percentile, postPurchase, startBenchServer } from './support.ts';
import { dueCents, insertDueCommissions } from './due-commissions.ts';
import { ratio, report } from './report.ts';

/**
 * `npm run bench -- payouts-scale`: pays 200,000 due commissions of one creator by repeated exports, next to one bare update of as
 * many rows. Then it pays 50,000 more while signed webhooks of the same creator arrive. Exits with status 1 unless each
 * commission was paid once, the sums are right and every webhook got a 200.
 */
const ROWS_ALONE = Number(process.env['SCALE_ROWS'] ?? 200_000);
const ROWS = ROWS_ALONE * 1.25;
const SWEEP_PAGE = 1_000;
const WEBHOOKS_IN_FLIGHT = Number(process.env['SCALE_IN_FLIGHT'] ?? 4);
const USERS = 40;

const print = (line: string) => process.stdout.write(`${line}\n`);
const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;
const MIB = 2 ** 20;

const { backends, base, key, stop } = await startBenchServer();
const { appId, stripeSecret, users } = await createBenchApp(base, key, { creators: 1, users: USERS });
const sql = connect({
  url: backends.migrationsDatabaseUrl,
  max: 1,
  statementTimeoutMs: 0,
  patienceMs: 600_000,
  indexPlans: false,
});
const { affiliateId } = await sql.one<{ affiliateId: string }>`
  select id as affiliate_id from affiliates where app_id = ${appId}`;

const insertedAt = performance.now();
await insertDueCommissions(sql, { appId, customerUserId: users[0] ?? '', status: 'pending' }, ROWS);
// As the sweep of the service, which runs beside: otherwise it would mature them beside the exports.
for (let last = SWEEP_PAGE; last === SWEEP_PAGE;) last = await matureOverdue(sql, SWEEP_PAGE);
await sql`create schema plain`;
await sql`create table plain.commissions (like public.commissions including defaults including indexes)`;
await sql`insert into plain.commissions select * from commissions order by id limit ${ROWS_ALONE}`;
/** Ends what an insert or update of many rows leaves to do, so that it does not run beside what is measured. */
const settle = async () => {
  await sql`vacuum analyze`;
  await sql`checkpoint`;
};
await settle();
print(`${ROWS} due commissions inserted in ${seconds(insertedAt)}`);
const updatedAt = performance.now();
await sql`
  update plain.commissions set status = 'paid', matured_at = now(), paid_at = now(), payout_id = ${newId('payout')}
   where affiliate_id = ${affiliateId} and status <> 'paid' and due_at <= now()`;
const bareMs = performance.now() - updatedAt;
await settle();

/** The highest resident memory of the service's process; Postgres and Temporal have their own. */
let mostRss = process.memoryUsage().rss;
print(`memory before: ${(mostRss / MIB).toFixed(0)} MiB`);
const sampling = setInterval(() => {
  mostRss = Math.max(mostRss, process.memoryUsage().rss);
}, 50);

const progress = { isPaid: false };
const webhooks = { times: [] as number[], pending: 0, others: 0, earned: 0 };
async function sendWebhooks(worker: number): Promise<void> {
  for (let n = worker; !progress.isPaid; n += WEBHOOKS_IN_FLIGHT) {
    const sent = performance.now();
    const { status, body } = await postPurchase(
      `${base}/webhooks/stripe/${appId}`,
      stripeSecret,
      users[n % users.length] ?? '',
    );
    webhooks.times.push(performance.now() - sent);
    if (status !== 200) webhooks.others += 1;
    else if (body.pending) webhooks.pending += 1;
    else webhooks.earned += 1;
  }
}

const paid = new Map<string, number>();
let exports = 0;
let refused = 0;
let twice = 0;
/** Exports until so many commissions are paid, or none is due. Returns how long that took, ms. */
async function exportUntil(rowsPaid: number): Promise<number> {
  const from = performance.now();
  for (let more = true; more && paid.size < rowsPaid;) {
    const begin = performance.now();
    const response = await fetch(`${base}/apps/${appId}/affiliates/${affiliateId}/payouts/export`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
    });
    const text = await response.text();
    if (response.status === 503) {
      refused += 1;
      print(`export refused after ${seconds(begin)}: ${text}`);
      if (refused > 10) throw new Error('ten exports were refused');
      continue;
    }
    if (!response.ok) throw new Error(`export: ${response.status} ${text}`);
    more = response.headers.get('x-payout-more-due') === 'true';
    const rows = text.trimEnd().split('\r\n').slice(1);
    for (const row of rows) {
      const [, , , id = '', cents] = row.split(',');
      if (paid.has(id)) twice += 1;
      paid.set(id, Number(cents));
    }
    exports += 1;
    print(
      `export ${exports}: ${rows.length} rows, ${(text.length / MIB).toFixed(1)} MiB, in ${seconds(begin)}; ` +
        `${webhooks.times.length} webhooks so far`,
    );
  }
  return performance.now() - from;
}

const aloneMs = await exportUntil(ROWS_ALONE);
const paidAlone = paid.size;
const sending = Array.from({ length: WEBHOOKS_IN_FLIGHT }, (_, worker) => sendWebhooks(worker));
let besideMs = 0;
try {
  besideMs = await exportUntil(ROWS);
} finally {
  progress.isPaid = true;
}
await Promise.all(sending);
clearInterval(sampling);
print(`${exports} exports, ${refused} refused`);

const expected = Array.from({ length: ROWS }, (_, n) => dueCents(n + 1)).reduce(
  (sum, cents) => sum + cents,
  0,
);
const csvCents = [...paid.values()].reduce((sum, cents) => sum + cents, 0);
const ledger = await sql.one<{ payouts: number; items: number; cents: number; due: number }>`
  select (select count(*)::int from payouts where app_id = ${appId}) as payouts,
         (select count(distinct commission_id)::int from payout_items where app_id = ${appId}) as items,
         (select coalesce(sum(total_cents), 0)::bigint from payouts where app_id = ${appId}) as cents,
         (select count(*)::int from commissions where app_id = ${appId} and status <> 'paid' and due_at <= now()) as due`;
print(
  `paid rows in the CSVs: ${paid.size} (${twice} twice), ${csvCents} cents; in the ledger: ${ledger.items} rows of ` +
    `${ledger.payouts} payouts, ${ledger.cents} cents, ${ledger.due} still due; expected ${ROWS} rows, ${expected} cents`,
);
webhooks.times.sort((a, b) => a - b);
const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(webhooks.times, share).toFixed(0));
print(
  `webhooks meanwhile: ${webhooks.times.length}, ${webhooks.earned} with their commission, ${webhooks.pending} pending, ` +
    `${webhooks.others} without a 200; p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms`,
);
print(`memory at most: ${(mostRss / MIB).toFixed(0)} MiB`);
const rate = (rows: number, ms: number) => `${((rows * 1000) / ms).toFixed(0)} rows/s`;
report({
  path: `${ROWS_ALONE} due commissions of one creator by repeated exports, from the request to the CSV`,
  comparedWith: 'a bare update of as many rows',
  measured: `${rate(paidAlone, aloneMs)} against ${rate(ROWS_ALONE, bareMs)}: ${ratio(aloneMs / paidAlone / (bareMs / ROWS_ALONE))} of its time`,
  target: 'at most 2',
  isReached: aloneMs / paidAlone <= (2 * bareMs) / ROWS_ALONE,
});
report({
  path: `${ROWS - ROWS_ALONE} more beside webhooks of the creator, ${WEBHOOKS_IN_FLIGHT} in flight`,
  comparedWith: 'without webhooks',
  measured: `${rate(paid.size - paidAlone, besideMs)} against ${rate(paidAlone, aloneMs)}; webhooks p50 ${p50} ms, p99 ${p99} ms, ${webhooks.others} without a 200`,
  target: '',
  isReached: null,
});

const checkedAt = performance.now();
const broken = (await checkLedger(sql, [appId as AppId])).filter(
  // A pending delivery may still be evaluated.
  ({ name, ok }) => !ok && name !== 'no_event_is_left_processing',
);
for (const { name, violations, examples } of broken) {
  print(`ledger check ${name}: ${violations} rows, ${examples.slice(0, 3).join(', ')}`);
}
print(`ledger checked in ${seconds(checkedAt)}: ${broken.length === 0 ? 'consistent' : 'NOT consistent'}`);

const isRight =
  paid.size === ROWS &&
  twice === 0 &&
  csvCents === expected &&
  ledger.items === ROWS &&
  ledger.cents === expected &&
  ledger.due === 0 &&
  webhooks.others === 0 &&
  broken.length === 0;
print(isRight ? 'right' : 'WRONG');
if (!isRight) process.exitCode = 1;
await sql.close();
await stop();
