import { spawn } from 'node:child_process';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createGzip } from 'node:zlib';
import { startBenchServer } from './support.ts';

/**
 * `npm run bench -- reconcile`: writes exports of RevenueCat and Stripe with `BENCH_ROWS` payments, of which the ledger lacks one
 * in a thousand, has another amount of one in a thousand, and knows one in a thousand that the export lacks. Compares them
 * with the command line in a process of its own, and prints time, memory and findings.
 */
const ROWS = Number(process.env['BENCH_ROWS'] ?? 200_000);
const ONE_IN = 1_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const STEP_MS = 10_000;

const server = await startBenchServer();
const { sql } = server.service;
const folder = await mkdtemp(path.join(tmpdir(), 'bench-reconcile-'));

async function call(method: string, route: string, body: object): Promise<{ id: string }> {
  const response = await fetch(server.base + route, {
    method,
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { id: string };
}

async function createApp(provider: string): Promise<string> {
  const { id } = await call('POST', '/apps', { name: `Bench ${provider}` });
  const secret = provider === 'stripe' ? { secret: `whsec_${crypto.randomUUID()}` } : {};
  await call('PUT', `/apps/${id}/webhooks/${provider}/secret`, secret);
  return id;
}

/** Inserts the payments of an app, which webhooks would have reported. */
async function fillLedger(appId: string, provider: string, store: string, prefix: string): Promise<void> {
  const id = (kind: string) =>
    sql.fragment`${kind} || '_0' || lpad(n::text, 24, '0') || ${store === 'stripe' ? 's' : 'r'}`;
  const at = sql.fragment`to_timestamp(${START / 1000} + n * ${STEP_MS / 1000}::float8)`;
  for (let from = 0; from < ROWS; from += 4_000) {
    const numbers = sql.fragment`generate_series(${from}::int, ${Math.min(ROWS, from + 4_000) - 1}::int) n`;
    const amount = sql.fragment`case when n % ${ONE_IN}::int = 2 then 1300 else 1299 end`;
    const known = sql.fragment`n % ${ONE_IN}::int <> 1`;
    await sql`
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof,
                              body_sha256, event_id, source_event_id, event_count, completed_at)
      select ${id('del')}, ${appId}, ${provider}, ${at}, true, 'processed', secret.id, '{"kind": "headers", "headers": {}}',
             sha256('x'), ${id('evt')}, 'source-' || n, 1, ${at}
        from (select id from webhook_secrets where app_id = ${appId}) secret, ${numbers} where ${known}`;
    await sql`
      insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                          customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
      select ${id('evt')}, ${appId}, ${id('del')}, ${provider}, 'source-' || n, 'purchase', 'production', ${at}, ${at},
             'user-' || n, ${store}, ${prefix} || n, 'USD', ${amount}, ${amount}, 'user_never_identified'
        from ${numbers} where ${known}`;
    await sql`
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                            only_anonymous_user, evaluated_at, likely_cause)
      select ${id('pmt')}, ${appId}, 'production', ${store}, ${prefix} || n, ${id('evt')}, 'USD', ${amount}, ${amount}, ${at},
             false, ${at}, 'user_never_identified'
        from ${numbers} where ${known}`;
  }
}

type Cells = Readonly<Record<string, string>>;

const spaced = (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

const ROW: Readonly<Record<string, (n: number) => Cells>> = {
  revenuecat: (n) => ({
    rc_original_app_user_id: '$RCAnonymousID:87c6049c58069238dce29853916d624c',
    rc_last_seen_app_user_id_alias: `user-${n}`,
    country: 'US',
    product_identifier: 'lantern.plus.monthly',
    start_time: spaced(START + n * STEP_MS),
    end_time: spaced(START + n * STEP_MS + 2_592_000_000),
    store: 'app_store',
    is_auto_renewable: 'true',
    is_trial_period: 'false',
    is_sandbox: 'false',
    purchase_price_in_usd: '12.99',
    purchased_currency: 'USD',
    purchase_price_in_purchased_currency: '12.99',
    store_transaction_id: `7000${n}`,
    refunded_at: '',
    renewal_number: '1',
    ownership_type: 'PURCHASED',
    custom_subscriber_attributes: '"{""campaign"": ""spring, 2026"", ""note"": ""two\nlines""}"',
  }),
  stripe: (n) => ({
    balance_transaction_id: `txn_${n}`,
    created_utc: spaced(START + n * STEP_MS),
    currency: 'usd',
    gross: '12.99',
    reporting_category: 'charge',
    source_id: `ch_${n}`,
    description: '"Subscription update, Lantern Plus"',
    customer_facing_amount: '12.99',
    customer_facing_currency: 'usd',
    customer_id: `cus_${n}`,
    charge_id: `ch_${n}`,
    payment_intent_id: `pi_${n}`,
    invoice_id: `in_${n}`,
    subscription_id: `sub_${n}`,
    'payment_metadata[app_user_id]': `user-${n}`,
  }),
};

async function writeExport(file: string, row: (n: number) => Cells): Promise<void> {
  const out = createGzip({ level: 1 });
  const written = once(out.pipe(createWriteStream(file)), 'finish');
  out.write(`${Object.keys(row(0)).join(',')}\r\n`);
  for (let n = 0; n < ROWS; n += 1) {
    // The export lacks the payments with the remainder 3.
    if (n % ONE_IN === 3) continue;
    if (!out.write(`${Object.values(row(n)).join(',')}\r\n`)) await once(out, 'drain');
  }
  out.end();
  await written;
}

/** Runs the command line. Returns its time, its peak memory and its report. */
async function compare(appId: string, provider: string, file: string) {
  const startedAt = performance.now();
  const args = [
    'dist/src/cli/main.js',
    'reconcile',
    file,
    '--app',
    appId,
    '--provider',
    provider,
    '--format',
    'json',
  ];
  const env = { ...process.env, DATABASE_URL: server.backends.databaseUrl };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let [peakKiB, cpuTicks] = [0, 0];
  const poll = setInterval(() => {
    try {
      const [, text = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      peakKiB = Math.max(peakKiB, Number(text));
      const times = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      // User and system time, in ticks of a hundredth of a second.
      cpuTicks = Number(times[11]) + Number(times[12]);
    } catch {
      // The process has ended.
    }
  }, 100);
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()));
  const [status] = (await once(child, 'close')) as [number];
  clearInterval(poll);
  const report = JSON.parse(out) as { rows: number; matched: number; counts: object };
  return {
    status,
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: cpuTicks / 100,
    peakMiB: peakKiB / 1024,
    ...report,
  };
}

try {
  for (const [provider, store, prefix] of [
    ['revenuecat', 'app_store', '7000'],
    ['stripe', 'stripe', 'in_'],
  ] as const) {
    const appId = await createApp(provider);
    await fillLedger(appId, provider, store, prefix);
    await sql`analyze`;
    const file = path.join(folder, `${provider}.csv.gz`);
    const row = ROW[provider];
    if (row === undefined) continue;
    await writeExport(file, row);
    const { status, seconds, cpuSeconds, peakMiB, rows, matched, counts } = await compare(
      appId,
      provider,
      file,
    );
    const { size } = await stat(file);
    console.log(
      `${provider}: ${rows} rows (${(size / 1024 / 1024).toFixed(1)} MiB packed) in ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of it processor time of the command, peak memory ${peakMiB.toFixed(0)} MiB, ${matched} matched, exit status ${status}, ${JSON.stringify(counts)}`,
    );
  }
} finally {
  await server.stop();
  await rm(folder, { recursive: true });
}
