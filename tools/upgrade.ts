import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { projectRoot } from '../src/config/project-root.ts';
import { listAppIds } from '../src/db/apps.ts';
import { checkLedger } from '../src/db/ledger-checks/index.ts';
import { connect } from '../src/db/sql.ts';
import { ID_PREFIXES } from '../src/domain/ids.ts';
import type { IdKind } from '../src/domain/ids.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { startLocalTemporal } from '../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.ts';
import { startChildService } from '../test/support/child-service.ts';
import { eventually } from '../test/support/eventually.ts';
import { Founder, setUpApp } from '../test/support/founder.ts';
import { createDatabase, inDatabase } from '../test/support/postgres-admin.ts';
import { bodyOf, revenuecatEvent } from '../test/support/provider-fixtures.ts';
import { TEST_SECRETS_KEY } from '../test/support/service.ts';
import { runTool, say } from './run-tool.ts';
import { WITHOUT_LIMITS } from './without-limits.ts';

/*
 * `npm run test:upgrade -- [--rows N]`: starts the build of the baseline on a database with a million rows, migrates the database with
 * today's code while clients read and write, then runs a process of each version side by side on one database and one Temporal
 * server, then today's alone. Both versions take webhooks, exports and the hold timers and workflows of the other. Fails when a
 * statement waits for a second, or anything is lost, doubled or refused with another status than 503.
 */

/** The first version, 0.1.0. It is built with today's packages, of which only it needs `raw-body` and `rate-limiter-flexible`. */
const FIRST = 'd1b81d5';
/** The version to upgrade from: the last one that was tagged before this commit, or the first one. */
const BASELINE = versionBefore();
const rowsFlag = process.argv.indexOf('--rows');
const ROWS = rowsFlag === -1 ? 1_000_000 : Number(process.argv[rowsFlag + 1]);
const MOST_WAIT_MS = 1_000;
const SIDE_BY_SIDE_MS = 12_000;
const CLIENTS = 3;

const run = promisify(execFile);

function versionBefore(): string {
  try {
    return execFileSync('git', ['describe', '--tags', '--abbrev=0', '--match=v*', 'HEAD^'], {
      cwd: projectRoot,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return FIRST;
  }
}

/** Builds the baseline from the history of the repository, once. Returns its folder. */
async function buildBaseline(): Promise<string> {
  const folder = path.join(projectRoot, '.cache', `baseline-${BASELINE}`);
  if (existsSync(folder)) return folder;
  try {
    execFileSync('git', ['cat-file', '-e', `${BASELINE}^{commit}`], { cwd: projectRoot, stdio: 'ignore' });
  } catch {
    throw new Error(
      `The commit ${BASELINE} is missing: this clone is shallow. Fetch the history (git fetch --unshallow), then run this again.`,
    );
  }
  say(`Building the baseline ${BASELINE}`);
  const unfinished = `${folder}-${randomUUID()}`;
  await mkdir(unfinished, { recursive: true });
  await run('sh', ['-c', `git archive ${BASELINE} | tar -x -C "${unfinished}"`], { cwd: projectRoot });
  await symlink(path.join(projectRoot, 'node_modules'), path.join(unfinished, 'node_modules'));
  await run('npm', ['run', '-s', 'build'], { cwd: unfinished });
  await rename(unfinished, folder);
  return folder;
}

const id = (kind: IdKind, number: string) => `'${ID_PREFIXES[kind]}_1' || lpad((${number})::text, 25, '0')`;

/** Fills the tables that grow with use, without triggers: clicks, and deliveries with events and payments. */
function growth(app: string, creator: string, link: string): string[] {
  const [clicks, sales] = [Math.round(ROWS * 0.4), Math.round(ROWS * 0.15)];
  return [
    `insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
     select ${id('click', 'n')}, '${app}', '${creator}', '${link}', md5(n::text)::uuid, false, now() from generate_series(1, ${clicks}) n`,
    `insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256, event_id,
                             event_count, completed_at)
     select ${id('delivery', 'n')}, '${app}', 'stripe', now(), true, 'processed', (select min(id) from webhook_secrets where app_id = '${app}'),
            sha256('x'), ${id('event', 'n')}, 1, now() from generate_series(1, ${sales}) n`,
    `insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                         customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
     select ${id('event', 'n')}, '${app}', ${id('delivery', 'n')}, 'stripe', 'e-' || n, 'purchase', 'production', now(), now(),
            'u-' || n, 'stripe', 'r-' || n, 'USD', 1000, 1000, 'user_never_identified' from generate_series(1, ${sales}) n`,
    `insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                           only_anonymous_user, version, evaluated_at, likely_cause)
     select ${id('payment', 'n')}, '${app}', 'production', 'stripe', 'r-' || n, ${id('event', 'n')}, 'USD', 1000, 1000, now(), false, 1,
            now(), 'user_never_identified' from generate_series(1, ${sales}) n`,
    `insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
     select '${app}', 'u-' || n, ${id('payment', 'n')}, 'production', 0 from generate_series(1, ${sales}) n`,
  ];
}

const folder = await mkdtemp(path.join(tmpdir(), 'tributary-upgrade-'));
const stops: (() => Promise<unknown>)[] = [];

async function main(): Promise<void> {
  const baseline = await buildBaseline();
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data'), durable: false });
  stops.push(() => postgres.stop());
  await createDatabase(postgres.ownerUrl, 'upgrade');
  const url = inDatabase(postgres.ownerUrl, 'upgrade');
  const temporal = await startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress: say });
  stops.push(async () => await temporal.stop());
  const environment = {
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: url,
    SECRETS_KEY: TEST_SECRETS_KEY.toString('base64'),
  };
  const admin = async (root: string, ...args: string[]) => {
    const { stdout } = await run('node', ['dist/src/cli/main.js', ...args, '--json'], {
      cwd: root,
      env: environment,
    });
    return JSON.parse(stdout) as { id: string; key: string; migrations: string[] };
  };
  const first = await admin(baseline, 'migrate');
  say(`The baseline's migrations: ${first.migrations.join(', ')}`);
  const account = await admin(baseline, 'accounts', 'create', '--name', 'Example');
  const permissions = 'read,write,setup,payout';
  const { key } = await admin(
    baseline,
    'keys',
    'create',
    '--account',
    account.id,
    '--permissions',
    permissions,
  );
  const variables = {
    TEMPORAL_ADDRESS: temporal.address,
    LOG_LEVEL: 'fatal',
    ...WITHOUT_LIMITS,
  };
  const old = await startChildService(url, variables, baseline);
  stops.push(async () => await old.kill());
  const founder = await setUpApp(new Founder(old.url, key, account.id), { holdPeriodDays: 0 });
  const users = [await founder.customer(), await founder.customer()];
  const { id: crowded } = await founder.ok<{ id: string }>('POST', '/apps', { name: 'Crowded' });
  await founder.ok('PUT', `/apps/${crowded}/webhooks/stripe/secret`, { secret: 'whsec_test_upgrade' });
  const { id: creator } = await founder.ok<{ id: string }>('POST', `/apps/${crowded}/affiliates`, {
    name: 'Creator',
  });
  const link = await founder.ok<{ id: string }>('POST', `/apps/${crowded}/links`, {
    affiliateId: creator,
    slug: 'crowded',
    destinationUrl: 'https://example.com',
  });
  const filler = new pg.Client(url);
  await filler.connect();
  await filler.query('set session_replication_role = replica');
  const filledAt = Date.now();
  let rows = 0;
  for (const statement of growth(crowded, creator, link.id))
    rows += (await filler.query(statement)).rowCount ?? 0;
  await filler.query('analyze');
  await filler.end();
  say(`${rows} rows were added in ${((Date.now() - filledAt) / 1_000).toFixed(0)} s`);

  // --- Clients of both versions: webhooks, exports, clicks, reads ---

  const targets = [old.url];
  const load = { isRunning: true };
  const counts = new Map<string, number>();
  const bad: string[] = [];
  let purchases = 0;
  const untilDone = async (name: string, attempt: () => Promise<{ status: number; text: string }>) => {
    let last = '';
    for (let time = 1; time <= 60; time += 1) {
      const answer = await attempt().catch((error: unknown) => ({ status: 0, text: String(error) }));
      counts.set(`${name} ${answer.status}`, (counts.get(`${name} ${answer.status}`) ?? 0) + 1);
      if (answer.status >= 200 && answer.status < 300) return;
      // A process that was stopped refuses connections: a balancer would choose another.
      if (answer.status !== 503 && answer.status !== 0)
        bad.push(`${name}: ${answer.status} ${answer.text.slice(0, 200)}`);
      last = answer.text;
      await sleep(200);
    }
    bad.push(`${name} never succeeded: ${last.slice(0, 200)}`);
  };
  const client = async (n: number) => {
    for (let turn = n; load.isRunning; turn += 1) {
      const target = () => targets[turn % targets.length] ?? '';
      const through = <T>(call: (of: Founder) => Promise<T>) => {
        const of = Object.assign(new Founder(target(), key, account.id), {
          app: founder.app,
          slug: founder.slug,
        });
        Object.assign(of, { revenuecatToken: founder.revenuecatToken, affiliateId: founder.affiliateId });
        return call(of);
      };
      if (turn % 4 < 2) {
        // Refunds nothing and is due at once.
        const body = bodyOf(
          revenuecatEvent({ userId: users[turn % 2] ?? '', usd: 10, occurredAt: Date.now() - 40 * DAY_MS }),
        );
        purchases += 1;
        await untilDone('webhook', async () => await through((of) => of.revenuecat(body)));
      } else if (turn % 4 === 2) {
        const headers = { 'idempotency-key': randomUUID() };
        await untilDone(
          'export',
          async () => await through((of) => of.exportCsv(founder.affiliateId, { headers })),
        );
      } else {
        // Today's description of the API does not describe the responses of the baseline.
        await untilDone('read', async () => {
          const headers = { authorization: `Bearer ${key}` };
          const response = await fetch(`${target()}/apps/${founder.app.id}/overview`, { headers });
          return { status: response.status, text: await response.text() };
        });
      }
    }
  };
  const clients = Array.from({ length: CLIENTS }, async (_, n) => await client(n));

  // --- The migrations, while one connection reads and writes every table that they touch ---

  const watch = { isRunning: true, most: 0, statements: 0 };
  const watcher = new pg.Client(url);
  await watcher.connect();
  const watching = (async () => {
    for (let n = 0; watch.isRunning; n += 1) {
      for (const statement of [
        `select count(*) from (select from deliveries where app_id = '${crowded}' order by received_at desc limit 10) d`,
        `insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
         values (${id('click', String(ROWS * 2 + n))}, '${crowded}', '${creator}', '${link.id}', gen_random_uuid(), false, now())`,
        `update payments set evaluated_at = now() where id = ${id('payment', '1')}`,
        `select count(*) from (select from payouts limit 1) p, installation, account_keys`,
        `update deliveries set last_error = null where id = ${id('delivery', '1')}`,
      ]) {
        const began = performance.now();
        await watcher.query(statement);
        watch.most = Math.max(watch.most, performance.now() - began);
        watch.statements += 1;
      }
      await sleep(5);
    }
  })();
  await sleep(1_000);
  const quiet = watch.most;
  const migratedAt = Date.now();
  const { migrations } = await admin(projectRoot, 'migrate');
  const took = Date.now() - migratedAt;
  await sleep(500);
  watch.isRunning = false;
  await watching;
  await watcher.end();
  say(
    `The migrations ${migrations.join(', ')} took ${took} ms; the longest of ${watch.statements} statements took ${watch.most.toFixed(0)} ms, ${quiet.toFixed(0)} ms before them`,
  );
  if (migrations.length === 0) bad.push('no migration ran');
  if (watch.most >= MOST_WAIT_MS) bad.push(`a statement waited ${watch.most.toFixed(0)} ms`);

  // --- Both versions, then today's alone ---

  const current = await startChildService(url, variables);
  stops.push(async () => await current.kill());
  targets.push(current.url);
  await sleep(SIDE_BY_SIDE_MS);
  targets.shift();
  const stopped = await old.stop();
  if (stopped !== 0) bad.push(`the process of the baseline ended with ${stopped}`);
  await sleep(2_000);
  load.isRunning = false;
  await Promise.all(clients);

  const sql = connect({ url });
  stops.push(() => sql.close());
  const ofApp = sql.fragment`app_id = ${founder.app.id}`;
  await eventually(
    'every delivery has its outcome',
    async () =>
      (
        await sql.one<{
          n: number;
        }>`select count(*)::int as n from deliveries where completed_at is null and ${ofApp}`
      ).n === 0,
    60_000,
  );
  founder.url = current.url;
  await untilDone('export', async () => await founder.exportCsv());
  const found = await sql.one<{
    earned: number;
    payments: number;
    cents: number;
    paid: number;
    payouts: number;
  }>`
    select (select count(*)::int from commissions where ${ofApp}) as earned,
           (select count(distinct payment_id)::int from commissions where ${ofApp}) as payments,
           (select coalesce(sum(amount_cents), 0)::int from commissions where ${ofApp}) as cents,
           (select coalesce(sum(total_cents), 0)::int from payouts where ${ofApp}) as paid,
           (select count(*)::int from payouts where ${ofApp}) as payouts`;
  say(`${purchases} purchases, ${JSON.stringify(found)}`);
  say(
    `responses: ${[...counts]
      .map(([name, n]) => `${name}: ${n}`)
      .toSorted()
      .join(', ')}`,
  );
  if (found.earned !== purchases || found.payments !== purchases)
    bad.push(`${found.earned} commissions of ${purchases} purchases`);
  if (found.paid !== found.cents) bad.push(`${found.paid} cents were paid of ${found.cents}`);
  const app = (await listAppIds(sql)).filter((one) => one === founder.app.id);
  const violated = (await checkLedger(sql, app)).filter(({ ok }) => !ok);
  bad.push(...violated.map(({ name }) => `ledger check ${name}`));
  if (bad.length > 0) throw new Error(`${bad.length} problems:\n${bad.slice(0, 20).join('\n')}`);
  say('Nothing was lost, doubled or refused, and the ledger is consistent.');
}

await runTool(main, { stops, folder });
