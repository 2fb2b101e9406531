import { randomUUID } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { listAppIds } from '../src/db/apps.ts';
import { schedulesFor } from '../temporal/schedules.ts';
import { checkLedger } from '../src/db/ledger-checks/index.ts';
import { migrate } from '../src/db/migrate.ts';
import { connect } from '../src/db/sql.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { findMissingSearchAttributes } from '../temporal/search-attributes.ts';
import { startChildService } from '../test/support/child-service.ts';
import { eventually } from '../test/support/eventually.ts';
import { setUpFounder } from '../test/support/founder.ts';
import { createDatabase, inDatabase, runOn } from '../test/support/postgres-admin.ts';
import { requestRun } from '../test/support/reprocess.ts';
import { runAdminIn } from '../test/support/run-admin.ts';
import { TEST_SECRETS_KEY } from '../test/support/service.ts';
import { buildTemporalServer, startTemporalServer } from './temporal-server.ts';
import type { TemporalServer } from './temporal-server.ts';
import { failingChecks, runTool, say } from './run-tool.ts';

/*
 * `npm run test:temporal-wipe`: loses all data of the production Temporal server in the middle of a story, twice: while the
 * service processes live on, and while they are down. Deliveries, heals and a reprocess run are stuck halfway, an
 * erasure waits for its second search, commissions are
 * pending with hold timers, and a payout is in flight. An empty server comes back at the same address and nothing else is touched.
 * Fails unless everything is finished, nothing is doubled, and the ledger is consistent.
 */

/** How long a hold timer of the story lasts: a shorter one would have no timer. */
const HOLD_MS = 125_000;
/** After a minute of failed polls, the SDK gives up a worker when the server returns without its namespace. */
const LONG_OUTAGE_MS = 62_000;
/** What the creator has earned at the end, and the part of it that is due, in cents. */
const EARNED = 12 * 200 + 800;
const DUE = EARNED - 200;

await buildTemporalServer(say);
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-wipe-'));
const stops: (() => Promise<unknown>)[] = [];

/** Returns the ids of the Schedules that the Temporal server lists, sorted. */
async function listSchedules(connection: Connection): Promise<string[]> {
  const ids: string[] = [];
  for await (const { scheduleId } of new Client({ connection }).schedule.list()) ids.push(scheduleId);
  return ids.toSorted();
}

async function main(): Promise<void> {
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data'), durable: false });
  stops.push(() => postgres.stop());
  const database = inDatabase(postgres.ownerUrl, 'story');
  await createDatabase(postgres.ownerUrl, 'story');
  await migrate(database);
  const sql = connect({ url: database });
  stops.push(() => sql.close());

  // --- The Temporal server, which loses everything when it is wiped ---

  let server: TemporalServer | undefined;
  const startServer = async () => {
    for (const name of ['temporal', 'temporal_visibility']) {
      await runOn(postgres.ownerUrl, `drop database if exists "${name}" with (force)`);
      await createDatabase(postgres.ownerUrl, name);
    }
    const { hostname, port, username, password } = new URL(postgres.ownerUrl);
    server = await startTemporalServer({
      postgres: { host: hostname, port },
      user: username,
      password: decodeURIComponent(password),
      logFile: path.join(folder, 'temporal.log'),
      ...(server === undefined ? {} : { ports: server.ports }),
    });
    return server;
  };
  const { address } = await startServer();
  stops.push(async () => await server?.stop());
  const wipe = async (outageMs: number) => {
    const begin = Date.now();
    await server?.stop();
    await sleep(outageMs);
    await startServer();
    say(`The Temporal server was wiped; an empty one was up after ${Date.now() - begin} ms`);
  };

  // --- Two processes of the service ---

  const environment = { TEMPORAL_ADDRESS: address, LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'fatal' };
  const startApi = async () => await startChildService(database, { ...environment, ROLE: 'api' });
  const startWorker = async () => await startChildService(database, environment);
  let [api, worker] = [await startApi(), await startWorker()];
  stops.push(async () => await Promise.all([api.kill(), worker.kill()]));
  const founder = await setUpFounder({ sql, url: api.url });
  const isReady = async () => failingChecks((await founder.call('GET', '/readyz')).text)?.length === 0;
  await eventually('the service is ready', isReady, 60_000);
  const before = await Connection.connect({ address });
  // Visibility lists a Schedule a moment after it was created. The worker creates them before it is ready.
  await eventually(
    'the Schedules are listed',
    async () => (await listSchedules(before)).length === schedulesFor({ ratesUrl: null }).length,
    60_000,
  );
  const schedules = await listSchedules(before);
  await before.close();

  const unfinished = async () => {
    const { n } = await sql.one<{ n: number }>`
      select (select count(*) from deliveries where completed_at is null)::int
             + (select count(*) from bindings where healed_at is null)::int
             + (select count(*) from reprocess_runs where finished_at is null)::int
             + (select count(*) from erasures where finished_at is null)::int
             + (select count(*) from payments where recheck_since is not null)::int as n`;
    return n;
  };
  const setFault = async (isOn: boolean) =>
    await runOn(
      database,
      isOn
        ? `create or replace function story_fault() returns trigger language plpgsql as $$
             begin raise exception 'a fault of the story'; end $$;
           create or replace trigger story_fault before insert on commissions for each row execute function story_fault();
           create or replace trigger story_fault before update on reprocess_runs for each row
             when (new.finished_at is not null) execute function story_fault()`
        : 'drop trigger story_fault on commissions; drop trigger story_fault on reprocess_runs',
    );

  /** Leaves work of every kind open. Returns the payout that is in flight, and what must have been earned at the end. */
  const openWork = async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const [user, paidUser] = [await founder.customer(slug), await founder.customer(slug)];
    const { affiliateId: other, slug: otherSlug } = await founder.newAffiliate();
    const held = await founder.customer(otherSlug);
    const soon = Date.now() - 30 * DAY_MS + HOLD_MS;
    for (let n = 0; n < 3; n += 1) await founder.purchase(held, 10, { occurredAt: soon });
    await founder.purchase(paidUser, 50);
    // A user who buys before the service knows where he came from.
    const early = `early-${randomUUID()}`;
    await founder.purchase(early, 10, { occurredAt: Date.now() - 2 * DAY_MS });
    const installedAt = Date.now() - 3 * DAY_MS;
    const deviceId = await founder.install(slug, installedAt);
    await setFault(true);
    const answers = await Promise.all(Array.from({ length: 10 }, () => founder.purchase(user, 10)));
    if (!answers.every(({ status }) => status === 200)) throw new Error('a webhook was refused');
    const identify = { deviceId, customerUserId: early, identifiedAt: installedAt + 1 };
    await founder.ok('POST', '/sdk/identify', identify, founder.app.sdkKey);
    await requestRun(sql, founder.app.id);
    await eventually('the reprocess run has begun', async () => {
      const { n } = await sql.one<{ n: number }>`
        select count(*)::int as n from reprocess_runs where finished_at is null and relayed_at is null`;
      return n === 0;
    });
    const erased = await founder.customer(slug);
    await founder.ok('DELETE', `/apps/${founder.app.id}/users/${erased}`);
    await eventually('the erasure has begun', async () => {
      const { n } = await sql.one<{ n: number }>`
        select count(*)::int as n from erasures where finished_at is null and settles_at is null`;
      return n === 0;
    });
    await eventually('twelve pieces of work are open', async () => (await unfinished()) >= 12);
    // The worker stands still, so that the signal of the payout waits in Temporal.
    worker.process.kill('SIGSTOP');
    const headers = { 'idempotency-key': randomUUID() };
    const sent = founder.exportCsv(other, { headers }).catch(() => undefined);
    const inFlight = founder
      .exportCsv(affiliateId, { headers: { 'idempotency-key': headers['idempotency-key'] + 'b' } })
      .catch(() => undefined);
    await sleep(1_000);
    return {
      affiliateId,
      other,
      headers,
      inFlight: Promise.all([inFlight, sent]),
      key: headers['idempotency-key'] + 'b',
    };
  };
  type Work = Awaited<ReturnType<typeof openWork>>;

  const expectFinished = async ({ affiliateId, other, key }: Work, within: number) => {
    const begin = Date.now();
    await eventually('all open work is finished', async () => (await unfinished()) === 0, within).catch(
      async (error) => {
        say(
          JSON.stringify(
            await sql`select 'delivery' as kind, id, last_error from deliveries where completed_at is null union all select 'binding', id, null from bindings where healed_at is null union all select 'run', id, last_error from reprocess_runs where finished_at is null union all select 'erasure', id, null from erasures where finished_at is null`,
          ),
        );
        throw error;
      },
    );
    say(`All open work was finished after ${Date.now() - begin} ms`);
    const again = await founder.exportCsv(affiliateId, { headers: { 'idempotency-key': key } });
    if (again.status !== 200) throw new Error(`the export was not paid: ${again.status} ${again.text}`);
    const paid = again.text.trimEnd().split('\r\n').length - 1;
    await founder.exportCsv(affiliateId);
    const sums = await sql.one<{ earned: number; paid: number; payouts: number; pending: number }>`
      select (select sum(amount_cents)::int from commissions where affiliate_id = ${affiliateId}) as earned,
             (select sum(total_cents)::int from payouts where affiliate_id = ${affiliateId}) as paid,
             (select count(*)::int from payouts where affiliate_id = ${affiliateId}) as payouts,
             (select count(*)::int from commissions where affiliate_id = ${other} and status = 'pending') as pending`;
    say(`Payouts of the creator: ${JSON.stringify(sums)}; the one in flight had ${paid} commissions`);
    if (sums.earned !== EARNED || sums.paid !== DUE)
      throw new Error(`earned and paid are not ${EARNED} and ${DUE}: ${JSON.stringify(sums)}`);
    const connection = await Connection.connect({ address });
    await eventually(
      'the Schedules are back',
      async () => isDeepStrictEqual(await listSchedules(connection), schedules),
      60_000,
    );
    // A server that has added a search attribute knows it only after its next refresh of the namespace, some seconds later.
    await eventually(
      'the search attributes are back',
      async () => (await findMissingSearchAttributes(connection, 'default')).length === 0,
      90_000,
    );
    await connection.close();
  };
  const expectMatured = async ({ other }: Work) => {
    await eventually(
      'the held commissions have matured',
      async () => {
        const { n } = await sql.one<{ n: number }>`
          select count(*)::int as n from commissions where affiliate_id = ${other} and status = 'pending'`;
        return n === 0;
      },
      HOLD_MS + 75_000,
    );
  };

  say('--- Wiped while the processes live ---');
  const first = await openWork();
  await wipe(LONG_OUTAGE_MS);
  worker.process.kill('SIGCONT');
  const wiped = Date.now();
  await setFault(false);
  const [answer] = await first.inFlight;
  say(`The export in flight was answered with ${answer?.status} after ${Date.now() - wiped} ms`);
  await expectFinished(first, 75_000);
  say(`Everything was finished ${Date.now() - wiped} ms after the wipe`);

  say('--- Wiped while the processes are down; then tributary recover ---');
  const second = await openWork();
  await Promise.all([api.kill(), worker.kill()]);
  await second.inFlight;
  await wipe(0);
  await setFault(false);
  [api, worker] = await Promise.all([startApi(), startWorker()]);
  founder.url = api.url;
  const back = Date.now();
  if (!process.argv.includes('--without-recover')) {
    for (let time = 1; time <= 2; time += 1) {
      const { status, out, err } = await runAdminIn(
        { DATABASE_URL: database, SECRETS_KEY: TEST_SECRETS_KEY.toString('base64') },
        'recover',
      );
      say(out + err);
      if (status !== 0) throw new Error(`tributary recover ended with ${status}`);
    }
  }
  await eventually(
    'the export is answered',
    async () =>
      (await founder.exportCsv(second.affiliateId, { headers: { 'idempotency-key': second.key } })).status ===
      200,
    60_000,
  );
  await expectFinished(second, 120_000);
  say(`Everything was finished ${Date.now() - back} ms after the start`);

  await expectMatured(first);
  await expectMatured(second);
  say('The commissions with lost hold timers have matured');
  const checks = await checkLedger(sql, await listAppIds(sql));
  const bad = checks.filter(({ ok }) => !ok).map(({ name }) => name);
  if (bad.length > 0) throw new Error(`ledger checks: ${bad.join(', ')}`);
  say('The ledger is consistent.');
}

await runTool(main, { stops, folder });
