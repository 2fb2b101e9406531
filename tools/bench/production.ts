import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { buildTemporalServer, startTemporalWithPostgres } from '../temporal-server.ts';
import { postmasterOf, processorTimeMs } from './processor-time.ts';
import { runRounds, USERS } from './purchase-rounds.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { Stack } from './stack.ts';

/**
 * `npm run bench -- production`: signed purchases on the production Temporal server with a Postgres of its own, next to the bare shape
 * there, and what a delivery with its hold timer writes: WAL, rows and bytes of history and visibility.
 */
const COUNTED = Number(process.env['BENCH_COUNTED'] ?? 500);
const IN_FLIGHT = 16;

/** Returns the only value of a query. */
async function one(client: pg.Client, query: string): Promise<number> {
  const { rows } = await client.query<Record<string, string>>(query);
  return Number(Object.values(rows[0] ?? {})[0] ?? 0);
}

/** What the databases of the Temporal server hold, and the WAL of their Postgres until now. */
async function written(clients: Readonly<Record<'temporal' | 'temporal_visibility', pg.Client>>) {
  return {
    'bytes of WAL': await one(clients.temporal, `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')`),
    'rows of history': await one(clients.temporal, 'select count(*) from history_node'),
    'bytes of history': await one(
      clients.temporal,
      'select coalesce(sum(length(data)), 0) from history_node',
    ),
    'open and closed executions': await one(clients.temporal, 'select count(*) from executions'),
    'rows of visibility': await one(
      clients.temporal_visibility,
      'select count(*) from executions_visibility',
    ),
    'bytes of the database': await one(clients.temporal, `select pg_database_size('temporal')`),
    'bytes of the visibility database': await one(
      clients.temporal,
      `select pg_database_size('temporal_visibility')`,
    ),
  };
}

type Clients = Parameters<typeof written>[0];

async function run(stack: Stack, clients: Clients): Promise<void> {
  const databaseUrl = await stack.createDatabase('production');
  const tributary = await stack.startTributary({
    name: 'Tributary',
    databaseUrl,
    creators: USERS,
    users: USERS,
  });
  const bare = await stack.startTemporal('bare', tributary.users);
  const compare = await runRounds(stack, [tributary, bare], [databaseUrl]);
  compare(
    'webhook on the production server, 16 in flight, with its hold timers',
    [tributary, bare],
    'perSecond',
    {
      atLeast: 0.8,
    },
  );
  compare('webhook on the production server, 1 in flight, p50', [tributary, bare], 'p50Ms', { atMost: 1.3 });

  const before = await written(clients);
  const { times } = await sendPurchases([tributary], IN_FLIGHT, (sent) => sent >= COUNTED);
  await tributary.settled();
  const after = await written(clients);
  for (const [what, value] of Object.entries(after)) {
    const each = (value - before[what as keyof typeof before]) / times.length;
    process.stdout.write(
      `${what}, for each delivery with its hold timer: ${each.toFixed(each < 10 ? 2 : 0)}\n`,
    );
  }
}

const say = (line: string) => void process.stderr.write(`${line}\n`);
await buildTemporalServer(say);
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-production-'));
const { server, postgres } = await startTemporalWithPostgres(dataDir, { durable: true, say });
const open = async (database: string) => {
  const url = new URL(postgres.ownerUrl);
  url.pathname = `/${database}`;
  const client = new pg.Client(url.href);
  await client.connect();
  return client;
};
const clients = { temporal: await open('temporal'), temporal_visibility: await open('temporal_visibility') };
const postmaster = postmasterOf(dataDir);
const stack = await startStack({
  address: server.address,
  processorTimeMs: () => processorTimeMs(server.pid) + processorTimeMs(postmaster),
});
try {
  await run(stack, clients);
} finally {
  await stack.stop();
  for (const client of Object.values(clients)) await client.end();
  await server.stop();
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
}
