import { repairRollups } from '../../src/db/rollups.ts';
import { connect } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { insertDueCommissions } from './due-commissions.ts';
import { ratio, report } from './report.ts';
import { startStack } from './stack.ts';
import type { Stack, TributarySubject } from './stack.ts';
import { median } from './support.ts';

/**
 * `npm run bench -- reads`: the reads of founders in a database of 10,000 clicks and as many commissions, and in one of 10,000,000
 * clicks and 1,000,000 commissions, in turns in one run. The rows are inserted without triggers, and the roll-ups are then
 * computed from them. Needs 15 GB of disk and twenty to forty minutes.
 */
const SMALL = Number(process.env['BENCH_SMALL'] ?? 10_000);
const CLICKS = Number(process.env['BENCH_CLICKS'] ?? 10_000_000);
const COMMISSIONS = Number(process.env['BENCH_COMMISSIONS'] ?? 1_000_000);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 60);
const CREATORS = 100;
const CLICKS_PER_STATEMENT = 500_000;
const MOST_RATIO = 1.5;

const grouped = (count: number) => count.toLocaleString('en-US');
const print = (line: string) => process.stdout.write(`${line}\n`);

interface Size {
  readonly clicks: number;
  readonly commissions: number;
}

/** Adds clicks of the last 90 days, commissions, and a hundredth as many payments that earned nothing. */
async function grow(
  databaseUrl: string,
  { appId, users }: TributarySubject,
  { clicks, commissions }: Size,
): Promise<void> {
  const begin = performance.now();
  // As the command line connects: these statements read whole tables.
  const sql = connect({
    url: databaseUrl,
    max: 1,
    statementTimeoutMs: 0,
    indexPlans: false,
    settings: { jit: 'off' },
    patienceMs: 3_600_000,
  });
  // Without the triggers and foreign keys of each row.
  await sql`set session_replication_role = replica`;
  for (let from = 1; from <= clicks; from += CLICKS_PER_STATEMENT) {
    const to = Math.min(clicks, from + CLICKS_PER_STATEMENT - 1);
    await sql`
      with numbered as materialized (
        select app_id, affiliate_id, id as link_id, row_number() over () - 1 as number from links where app_id = ${appId}
      )
      insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
      select 'clk_0' || lpad(n::text, 25, '0'), app_id, affiliate_id, link_id, md5(n::text)::uuid, false,
             now() - interval '90 days' * (n::float8 / ${clicks}::float8)
        from generate_series(${from}::int, ${to}::int) n join numbered on number = n % ${CREATORS}`;
  }
  const perUser = Math.ceil(commissions / users.length);
  for (const [n, customerUserId] of users.entries()) {
    await insertDueCommissions(sql, { appId, customerUserId, status: 'matured' }, perUser, n * perUser);
  }
  const share = commissions / 100;
  await sql`
    insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                        customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
    select 'evt_1' || lpad(n::text, 25, '0'), ${appId}, 'del_1' || lpad(n::text, 25, '0'), 'stripe', 'unattributed-' || n, 'purchase',
           'production', now() - n * interval '1 minute', now() - n * interval '1 minute', 'stranger-' || n, 'stripe',
           'unattributed-' || n, 'USD', 500, 500, 'user_never_identified'
      from generate_series(1, ${share}::int) n`;
  await sql`set session_replication_role = origin`;
  await repairRollups(sql);
  await sql`vacuum analyze`;
  await sql.close();
  print(
    `${clicks} clicks and ${commissions} commissions inserted in ${((performance.now() - begin) / 1000).toFixed(0)} s`,
  );
}

const days = (count: number) => `from=${Date.now() - count * DAY_MS}&to=${Date.now()}`;

/** The reads, by name. Those that count up to a limit are left out: a database with fewer rows counts fewer. */
function readsOf({ base, appId }: TributarySubject, affiliateId: string): Readonly<Record<string, string>> {
  const app = `${base}/apps/${appId}`;
  return {
    overview: `${app}/overview`,
    "a creator's overview": `${app}/affiliates/${affiliateId}/overview`,
    creators: `${app}/affiliates`,
    links: `${app}/links`,
    commissions: `${app}/commissions`,
    "a creator's commissions": `${app}/commissions?affiliateId=${affiliateId}&status=matured`,
    'totals of 60 days': `${app}/commissions/totals?${days(60)}`,
    payouts: `${app}/payouts`,
    'preview of payouts': `${app}/payouts/preview`,
    'days of 90 days': `${app}/timeseries?interval=day&${days(90)}`,
    'hours of 30 days': `${app}/timeseries?interval=hour&${days(30)}`,
    "a creator's days": `${app}/timeseries?interval=day&affiliateId=${affiliateId}&${days(90)}`,
    'user ids': `${app}/diagnostics/identity`,
    devices: `${app}/diagnostics/identify`,
    'leaders of 30 days': `${app}/leaders?by=affiliate&measure=revenue&${days(30)}`,
    events: `${app}/events`,
    search: `${app}/search?q=bench-7`,
    unattributed: `${app}/diagnostics/unattributed`,
    deliveries: `${app}/diagnostics/webhooks`,
    'health of deliveries': `${app}/diagnostics/webhooks/summary`,
    'set-up': `${app}/setup`,
  };
}

async function timed(url: string, key: string): Promise<number> {
  const begin = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return performance.now() - begin;
}

async function run(stack: Stack): Promise<void> {
  const startGrown = async (name: string, size: Size) => {
    const databaseUrl = await stack.createDatabase(name);
    const subject = await stack.startTributary({ name, databaseUrl, creators: CREATORS, users: CREATORS });
    await grow(databaseUrl, subject, size);
    const answer = await fetch(`${subject.base}/apps/${subject.appId}/affiliates?limit=1`, {
      headers: { authorization: `Bearer ${subject.key}` },
    });
    const { items } = (await answer.json()) as { items: { id: string }[] };
    return { key: subject.key, reads: readsOf(subject, items[0]?.id ?? '') };
  };
  const small = await startGrown('small', { clicks: SMALL, commissions: SMALL });
  const large = await startGrown('large', { clicks: CLICKS, commissions: COMMISSIONS });
  let worst = { name: '', text: '', times: 0 };
  for (const [name, url] of Object.entries(small.reads)) {
    const times = { small: [] as number[], large: [] as number[] };
    for (let call = 0; call < CALLS; call += 1) {
      times.small.push(await timed(url, small.key));
      times.large.push(await timed(large.reads[name] ?? '', large.key));
    }
    // The first calls prepare statements and warm up.
    const medians = [median(times.large.slice(CALLS / 3)), median(times.small.slice(CALLS / 3))] as const;
    const text = `${medians[0].toFixed(1)} against ${medians[1].toFixed(1)} ms`;
    print(`${name.padEnd(24)} ${text}: ${ratio(medians[0] / medians[1])}`);
    if (medians[0] / medians[1] > worst.times) worst = { name, text, times: medians[0] / medians[1] };
  }
  report({
    path: `${Object.keys(small.reads).length} reads of founders, ${grouped(CLICKS)} clicks and ${grouped(COMMISSIONS)} commissions; the worst: ${worst.name}`,
    comparedWith: `${grouped(SMALL)} clicks and commissions`,
    measured: `${worst.text}: ${ratio(worst.times)}`,
    target: `at most ${MOST_RATIO}`,
    isReached: worst.times <= MOST_RATIO,
  });
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
