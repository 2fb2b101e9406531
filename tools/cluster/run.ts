import { chmod, mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eventually } from '../../test/support/eventually.ts';
import { startFaultyProxy } from '../chaos/proxy.ts';
import { Random } from '../chaos/random.ts';
import { PostgresServer } from '../chaos/servers.ts';
import { sayLogs } from '../production-stack/haproxy.ts';
import type { Stops } from '../production-stack/haproxy.ts';
import { checkBooks } from '../production-stack/books.ts';
import { agent, send } from '../production-stack/http.ts';
import { filesOfTheImage } from '../production-stack/image.ts';
import { startLoad } from '../production-stack/load.ts';
import { migrate, setUpDatabases, setUpNamespace, stackVariables } from '../production-stack/servers.ts';
import { createKey, requirePrograms, startService } from '../production-stack/service.ts';
import type { Service } from '../production-stack/service.ts';
import { click, tellStory } from '../production-stack/story.ts';
import { runTool, say } from '../run-tool.ts';
import { buildTemporalServer } from '../temporal-server.ts';
import { AnswerWatch } from './gaps.ts';
import { TemporalCluster } from './temporal-cluster.ts';

/*
 * `npm run test:cluster -- [--clients N]`: runs what docs/scaling.md calls a cell that survives the loss of a machine: three nodes of a
 * Temporal cluster, each with all four services, four service processes behind HAProxy, and a Postgres with a synchronous standby. Under
 * load, it kills a Temporal node, then the primary, whose standby is promoted under the same name. Fails when anything is lost or doubled,
 * or when a webhook, a click, a read or an export has no good answer for 30 s. Needs psql and haproxy.
 */

const { values: flags } = parseArgs({ options: { clients: { type: 'string', default: '4' } } });
const MOST_GAP_MS = 30_000;
const CALM_MS = 5_000;
const TEMPORAL_NODES = ['127.0.0.11', '127.0.0.12', '127.0.0.13'] as const;
const PROCESSES = ['127.0.0.21', '127.0.0.22', '127.0.0.23', '127.0.0.24'] as const;

/** The Postgres here has 200 connections: 108 for the four services of three nodes, and 48 for four service processes. */
const TEMPORAL_CONNECTIONS = {
  SQL_MAX_CONNS: '6',
  SQL_MAX_IDLE_CONNS: '6',
  SQL_VIS_MAX_CONNS: '3',
  SQL_VIS_MAX_IDLE_CONNS: '3',
};

requirePrograms();
await buildTemporalServer(say);
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-cluster-'));
await chmod(folder, 0o755);
const stops: Stops = [];

async function main(): Promise<void> {
  const image = await filesOfTheImage(path.join(folder, 'image'));
  const postgres = await PostgresServer.start(path.join(folder, 'primary'));
  stops.push(async () => await postgres.close());
  const name = await startFaultyProxy(() => postgres.port, new Random('cluster'));
  stops.push(async () => name.close());
  const variables = {
    ...stackVariables(postgres.ownerUrl, '127.0.0.1', String(name.port)),
    DATABASE_CONNECTIONS: '10',
  };
  await setUpDatabases(variables, path.join(folder, 'primary/postgres.log'));
  const promote = await postgres.addStandby();
  say('Postgres confirms what its standby has on the disk, too');

  const temporal = await TemporalCluster.start(
    TEMPORAL_NODES,
    {
      postgres: { host: '127.0.0.1', port: String(name.port) },
      password: variables.TEMPORAL_PASSWORD,
      environment: TEMPORAL_CONNECTIONS,
    },
    folder,
    stops,
  );
  await setUpNamespace(variables, temporal.address, folder);
  await migrate(image, variables);
  const service = await startService({
    image,
    variables,
    temporalAddress: temporal.address,
    addresses: PROCESSES,
    folder,
    stops,
  });
  const key = await createKey(service);
  const shop = await tellStory(service.base, key);
  const { base, appId, exportRoute } = shop;

  const endLoad = startLoad(shop, Number(flags.clients));
  const headers = { authorization: `Bearer ${key}` };
  let further = 0;
  const watch = new AnswerWatch({
    webhook: async () => {
      further += 1;
      return await untilStored(shop.purchase(shop.users[further % shop.users.length] ?? ''));
    },
    click: async () => await click(base, appId, crypto.randomUUID()),
    read: async () => await send(base, 'GET', `/apps/${appId}/overview`, { headers }),
    export: async () => await send(base, 'POST', exportRoute, { headers }),
  });
  const fault = async (what: string, work: () => Promise<void>, after: () => Promise<void>) => {
    await sleep(CALM_MS);
    const startedAt = Date.now();
    await work();
    const endedAt = Date.now();
    await after();
    await eventually(
      'every kind is answered',
      async () => watch.hasAnsweredSince(Date.now() - 2_000),
      120_000,
    );
    await sleep(CALM_MS);
    const gaps = watch.gapsSince(startedAt);
    say(
      `${what} (${endedAt - startedAt} ms): the longest time without a good answer was ${gaps.map(({ kind, ms }) => `${kind} ${(ms / 1_000).toFixed(1)} s`).join(', ')}`,
    );
    const late = gaps.filter(({ ms }) => ms > MOST_GAP_MS);
    if (late.length > 0)
      throw new Error(`${what}: no good answer for more than 30 s: ${JSON.stringify(late)}`);
  };

  await fault(
    'nothing',
    async () => await sleep(CALM_MS),
    async () => {},
  );
  await fault(
    `the Temporal node ${TEMPORAL_NODES[0]} was killed`,
    async () => await temporal.kill(TEMPORAL_NODES[0]),
    async () => {},
  );
  await temporal.revive();
  await fault('the primary was killed, and its standby promoted under the same name', promote, async () => {
    // The database can't tell whether the standby had received the last payouts. The operator can: it is synchronous.
    await eventually('payouts go on', async () => await resumePayouts(service), 60_000);
    const revived = await temporal.revive();
    if (revived.length > 0) say(`Temporal nodes that ended and were started again: ${revived.join(', ')}`);
  });
  await watch.end();
  const load = await endLoad();
  await checkBooks(variables, shop, { ...load, purchases: load.purchases + further }, stops);
}

/** Tells the service that no payout is missing. Returns whether it took that: its database may be on the way. */
async function resumePayouts({ admin }: Service): Promise<boolean> {
  return await admin('payouts', 'resume', '--none-missing').then(
    () => true,
    () => false,
  );
}

/** Sends something until it is answered with less than 500. Returns the first such answer, or the one after 60 s. */
async function untilStored(attempt: () => ReturnType<typeof send>): ReturnType<typeof send> {
  const until = Date.now() + 60_000;
  for (;;) {
    const answer = await attempt().catch(() => undefined);
    if (answer !== undefined && (answer.status < 500 || Date.now() > until)) return answer;
    await sleep(200);
  }
}

stops.push(async () => {
  agent.destroy();
});
await runTool(main, {
  stops,
  folder,
  onFailure: async () =>
    await sayLogs(
      folder,
      (await readdir(folder)).filter((entry) => entry.endsWith('.log')),
    ),
});
