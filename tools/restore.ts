import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { listAppIds } from '../src/db/apps.ts';
import { checkLedger } from '../src/db/ledger-checks/index.ts';
import { migrate } from '../src/db/migrate.ts';
import { connect } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { tryListen } from '../src/embedded/processes.ts';
import { startLocalTemporal } from '../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.ts';
import { startChildService } from '../test/support/child-service.ts';
import type { ChildService } from '../test/support/child-service.ts';
import { eventually } from '../test/support/eventually.ts';
import { setUpFounder } from '../test/support/founder.ts';
import { bodyOf, revenuecatEvent } from '../test/support/provider-fixtures.ts';
import { runOn } from '../test/support/postgres-admin.ts';
import { runAdminIn } from '../test/support/run-admin.ts';
import { readBlocks } from '../test/support/runnable-page.ts';
import { TEST_SECRETS_KEY } from '../test/support/service.ts';
import { failingChecks, runTool, say } from './run-tool.ts';

/*
 * `npm run test:restore`: runs the commands of docs/backup.md on a Postgres of Debian that the service uses: a base backup with an
 * archive of the log, then a restore to a moment. After that moment webhooks arrived, work got stuck, and a payout was made.
 * Temporal keeps its data. Fails when the restored database pays a commission twice, keeps a workflow without a row running, or
 * lacks what docs/backup.md promises. Needs the programs of Postgres (apt-get install postgresql).
 */

const run = promisify(execFile);

/** Returns the folder of the newest installed programs of Postgres. */
async function findPrograms(): Promise<string> {
  const root = '/usr/lib/postgresql';
  const versions = await readdir(root).catch(() => []);
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error('Postgres is missing: apt-get install postgresql');
  return path.join(root, newest, 'bin');
}

/** Returns the lines of a CSV without its header. */
const linesOf = (csv: string) => csv.trimEnd().split('\r\n').slice(1);

const folder = await mkdtemp(path.join(tmpdir(), 'tributary-restore-'));
const stops: (() => Promise<unknown>)[] = [];

function expect(what: string, isTrue: boolean): void {
  if (!isTrue) throw new Error(`this is not so: ${what}`);
  say(`✓ ${what}`);
}

async function main(): Promise<void> {
  const programs = await findPrograms();
  const isRoot = process.getuid?.() === 0;
  const [data, backups] = [path.join(folder, 'data'), path.join(folder, 'backups')];
  await chmod(folder, 0o711);
  const port = await tryListen(0);
  const environment: Record<string, string> = {
    PATH: `${programs}:${process.env['PATH']}`,
    DATA: data,
    BACKUPS: backups,
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: 'postgres',
  };
  /** Runs a script as the user of Postgres, which refuses to run as root. */
  const asPostgres = async (script: string) => {
    const command = ['bash', '-c', `set -euo pipefail; cd /; ${script}`];
    const [program = '', ...args] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command;
    return await run(program, args, { env: environment, timeout: 120_000 });
  };
  if (isRoot) {
    const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
    await chown(folder, uid ?? 0, gid ?? 0);
  }
  const settings = `port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '${folder}'\n`;
  const settingsFile = path.join(folder, 'settings.conf');
  await writeFile(settingsFile, settings);
  await asPostgres(`initdb --pgdata="$DATA" --username=postgres --auth=trust --no-sync > /dev/null
    cat ${settingsFile} >> "$DATA/postgresql.conf"
    pg_ctl --pgdata="$DATA" --wait --silent --log=${folder}/first.log start`);
  stops.push(async () => await asPostgres('pg_ctl --pgdata="$DATA" --mode=immediate --silent stop'));
  const blocks = (await readBlocks('docs/backup.md', 'bash')).map(({ script }) => script);
  const [setUp, backUp, stopCluster, restore] = blocks;
  if (blocks.length !== 4)
    throw new Error(`docs/backup.md has ${blocks.length} blocks of commands instead of 4`);

  const { stdout: version } = await asPostgres('postgres --version');
  say(`${version.trim()}, with the programs in ${programs}`);
  const url = `postgres://postgres@127.0.0.1:${port}/tributary`;
  await runOn(`postgres://postgres@127.0.0.1:${port}/postgres`, 'create database tributary');
  await migrate(url);
  await asPostgres(setUp ?? '');

  const temporal = await startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress: say });
  stops.push(async () => await temporal.stop());
  const start = async () =>
    await startChildService(url, { TEMPORAL_ADDRESS: temporal.address, LOG_LEVEL: 'fatal' });
  let service: ChildService = await start();
  stops.push(async () => await service.kill());
  let sql: Sql = connect({ url });
  stops.push(async () => await sql.close());
  const founder = await setUpFounder({ sql, url: service.url });
  /** Waits until only these checks of the readiness fail. */
  const ready = async (...failing: string[]) =>
    await eventually(
      'the service is ready',
      async () => failingChecks((await founder.call('GET', '/readyz')).text)?.join() === failing.join(),
      60_000,
    );
  await ready();
  const { affiliateId, slug } = await founder.newAffiliate();
  const user = await founder.customer(slug);
  const purchase = (usd: number) =>
    bodyOf(revenuecatEvent({ userId: user, usd, occurredAt: Date.now() - 40 * DAY_MS }));
  const send = async (body: Buffer) => {
    const { status, text } = await founder.revenuecat(body);
    if (status !== 200) throw new Error(`a webhook was refused: ${status} ${text}`);
  };
  await send(purchase(10));

  const { stdout: report } = await asPostgres(backUp ?? '');
  say(report.trim());
  await send(purchase(20));
  await eventually('both have earned', async () => (await sql`select from commissions`).length === 2, 30_000);
  await sleep(1_100);
  const { moment } = await sql.one<{ moment: string }>`select clock_timestamp()::text as moment`;
  await sleep(1_100);

  // --- After the moment: a purchase, a payout of all three, a purchase that gets stuck, a hold timer ---

  const lost = purchase(40);
  await send(lost);
  const key = randomUUID();
  await eventually(
    'the purchase has earned',
    async () => (await sql`select from commissions`).length === 3,
    30_000,
  );
  const paid = await founder.exportCsv(affiliateId, { headers: { 'idempotency-key': key } });
  const file = path.join(folder, 'payout.csv');
  await writeFile(file, paid.text);
  const paidCents = linesOf(paid.text).reduce((sum, line) => sum + Number(line.split(',')[4]), 0);
  if (linesOf(paid.text).length !== 3) throw new Error(`the payout has not three lines: ${paid.text}`);
  await send(bodyOf(revenuecatEvent({ userId: user, usd: 30, occurredAt: Date.now() - 10 * DAY_MS })));
  await runOn(
    url,
    `create function story_fault() returns trigger language plpgsql as $$ begin raise exception 'a fault of the story'; end $$;
     create trigger story_fault before insert on commissions for each row execute function story_fault()`,
  );
  await send(purchase(50));
  const connection = await Connection.connect({ address: temporal.address });
  stops.push(async () => await connection.close());
  const client = new Client({ connection });
  const runningOf = async (type: string) => {
    const { count } = await client.workflow.count(`WorkflowType = '${type}' and ExecutionStatus = 'Running'`);
    return count;
  };
  await eventually(
    'a delivery is stuck and a hold timer waits',
    async () => (await runningOf('delivery')) === 1 && (await runningOf('hold')) === 1,
    30_000,
  );
  say(`Restoring to ${moment}; since then a payout of ${linesOf(paid.text).length} commissions was made`);
  await service.stop();
  await sql.close();

  const began = Date.now();
  await asPostgres(stopCluster ?? '');
  environment['MOMENT'] = moment;
  await asPostgres(restore ?? '');
  say(`Restored in ${Date.now() - began} ms`);
  sql = connect({ url });
  service = await start();
  founder.url = service.url;
  // It may have forgotten payouts.
  await ready('payouts');

  // --- What the restored database knows, and what it does not ---

  const admin = async (...args: string[]) => {
    const { status, out, err } = await runAdminIn(
      { DATABASE_URL: url, SECRETS_KEY: TEST_SECRETS_KEY.toString('base64') },
      ...args,
    );
    say(`tributary ${args.join(' ')}: status ${status}. ${err.trim()}`);
    return { status, text: out + err };
  };
  const sums = async () =>
    await sql.one<{ commissions: number; payouts: number; paidCents: number }>`
      select (select count(*)::int from commissions) as commissions, (select count(*)::int from payouts) as payouts,
             (select coalesce(sum(total_cents), 0)::int from payouts) as paid_cents`;
  const restored = await sums();
  expect(
    'the two purchases before the moment are there, nothing after it',
    restored.commissions === 2 && restored.payouts === 0,
  );
  expect('recover starts what is open', (await admin('recover')).status === 0);
  await eventually(
    'no workflow of a missing delivery runs',
    async () => (await runningOf('delivery')) === 0,
    90_000,
  );
  expect('workflows whose rows are missing have ended without money', (await sums()).commissions === 2);
  const refused = await founder.exportCsv(affiliateId);
  expect(
    'an export is refused with payouts_stopped',
    refused.status === 503 && refused.text.includes('payouts_stopped'),
  );
  await sql`insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents)
            select 'pay_00000000000000000000000001', app_id, id, name, 1, 1 from affiliates where id = ${affiliateId}`.then(
    () => expect('the database refuses a payout', false),
    (error: unknown) =>
      expect('the database refuses a payout, whoever asks', String(error).includes('payouts are stopped')),
  );
  expect(
    'the file is an unknown payout',
    (await admin('payouts', 'verify', file, '--json')).text.includes('unknown_payout'),
  );
  const record = async () => await admin('payouts', 'record', file, '--total', String(paidCents));
  const early = await record();
  expect(
    'it cannot be recorded before its commissions are back',
    early.status === 1 && (await sums()).payouts === 0,
  );
  await send(lost);
  await eventually('the resent purchase has earned', async () => (await sums()).commissions === 3, 30_000);
  expect('resuming needs a statement', (await admin('payouts', 'resume')).status === 1);
  expect(
    'recording needs what was paid',
    (await admin('payouts', 'record', file)).status === 1 && (await sums()).payouts === 0,
  );
  expect('the file is recorded', (await record()).status === 0);
  expect('recording it twice changes nothing', (await record()).status === 0 && (await sums()).payouts === 1);
  expect('payouts go on', (await admin('payouts', 'resume', '--none-missing')).status === 0);
  const again = await founder.exportCsv(affiliateId);
  expect(
    'the next export pays none of the three again',
    again.status === 200 && linesOf(again.text).length === 0,
  );
  await send(purchase(60));
  const next = await founder.exportCsv(affiliateId);
  expect('a purchase after that is paid', linesOf(next.text).length === 1);
  const end = await sums();
  expect('every commission is paid once', end.paidCents === (10 + 20 + 40 + 60) * 20 && end.payouts === 2);
  const bad = (await checkLedger(sql, await listAppIds(sql))).filter(({ ok }) => !ok);
  expect(
    `the ledger is consistent ${bad.map(({ name, examples }) => `${name} ${examples.join(' ')}`).join(', ')}`,
    bad.length === 0,
  );
}

await mkdir(folder, { recursive: true });
await runTool(main, { stops, folder });
