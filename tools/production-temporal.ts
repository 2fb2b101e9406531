import { execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { projectRoot } from '../src/config/project-root.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { endWithThisProcess, tryListen } from '../src/embedded/processes.ts';
import { eventually } from '../test/support/eventually.ts';

const VERSION = '1.32.1';
const PROGRAMS = {
  'temporal-server': 'go.temporal.io/server/cmd/server',
  'temporal-sql-tool': 'go.temporal.io/server/cmd/tools/sql',
} as const;
const SCHEMAS = { temporal: 'temporal', temporal_visibility: 'visibility' } as const;
const SERVICES = ['frontend', 'history', 'matching', 'worker'] as const;
const START_TIMEOUT_MS = 60_000;

const folder = path.join(
  process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'),
  `tributary/temporal-server-${VERSION}`,
);
const program = (name: keyof typeof PROGRAMS) => path.join(folder, name);
const say = (line: string) => void process.stderr.write(`${line}\n`);

/** Builds the programs that are missing from Go modules, which takes about ten minutes once. */
async function build(): Promise<void> {
  const missing = Object.entries(PROGRAMS).filter(([name]) => !existsSync(path.join(folder, name)));
  if (missing.length === 0) return;
  say(`Building the Temporal server ${VERSION} with Go in ${folder}`);
  const source = path.join(folder, 'src');
  await mkdir(source, { recursive: true });
  const go = (...args: readonly string[]) =>
    execFileSync('go', args, { cwd: source, env: { ...process.env, CGO_ENABLED: '0' }, stdio: 'inherit' });
  if (!existsSync(path.join(source, 'go.mod'))) go('mod', 'init', 'local/temporal-server');
  go('get', '-tool', ...Object.values(PROGRAMS).map((name) => `${name}@v${VERSION}`));
  for (const [name, module] of missing) {
    go('build', '-trimpath', '-ldflags', '-s -w', '-o', path.join(folder, name), module);
  }
}

/** Returns a database of the server, as its settings name it. */
function store(database: URL, name: string, connections: number) {
  return {
    sql: {
      pluginName: 'postgres12',
      databaseName: name,
      connectAddr: database.host,
      connectProtocol: 'tcp',
      user: database.username,
      password: decodeURIComponent(database.password),
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: '1h',
    },
  };
}

/** Returns a free port. The server stores its ports in columns that end at 32,767. */
async function lowPort(): Promise<number> {
  return await tryListen(randomInt(10_000, 32_000)).catch(lowPort);
}

/** Returns the settings of a server whose four services run in one process and listen on the loopback address only. */
async function settings(database: URL) {
  const services: Record<string, { rpc: { grpcPort: number; membershipPort: number; bindOnIP: string } }> =
    {};
  for (const name of SERVICES) {
    const rpc = { grpcPort: await lowPort(), membershipPort: await lowPort(), bindOnIP: '127.0.0.1' };
    services[name] = { rpc };
  }
  const address = `127.0.0.1:${services['frontend']?.rpc.grpcPort}`;
  const yaml = {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: {
        default: store(database, 'temporal', 20),
        visibility: store(database, 'temporal_visibility', 10),
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services,
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    publicClient: { hostPort: address },
  };
  return { address, yaml };
}

/** Creates the server's two databases. */
function createDatabases({ hostname, port, username, password }: URL): void {
  const server = ['--plugin', 'postgres12_pgx', '--ep', hostname, '-p', port, '-u', username];
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const database = [...server, '--pw', decodeURIComponent(password), '--db', name];
    for (const args of [
      ['create-database'],
      ['setup-schema', '-v', '0.0'],
      ['update-schema', '-s', `postgresql/v12/${schema}`],
    ])
      execFileSync(program('temporal-sql-tool'), [...database, ...args], { stdio: 'ignore' });
  }
}

/**
 * `npm run test:production-temporal -- [PATH]`: runs the stories, or the tests of a path, on the production Temporal server with
 * Postgres. Builds the server once. Each run has new databases.
 */
await build();
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-temporal-'));
const postgres = await startEmbeddedPostgres({ dataDir, durable: false, onProgress: say });
createDatabases(new URL(postgres.ownerUrl));
const { address, yaml } = await settings(new URL(postgres.ownerUrl));
const configFile = path.join(dataDir, 'temporal.yaml');
await writeFile(configFile, JSON.stringify(yaml), { mode: 0o600 });
const logFile = path.join(dataDir, 'temporal.log');
const log = await open(logFile, 'w');
const server = spawn(program('temporal-server'), ['--config-file', configFile, '--allow-no-auth', 'start'], {
  stdio: ['ignore', log.fd, log.fd],
});
const stopWatching = endWithThisProcess(server.pid ?? 0, 'TERM');
const ended = new Promise((resolve) => {
  server.once('exit', resolve);
});
let status = 1;
try {
  await eventually(
    'the Temporal server is up',
    async () => {
      if (server.exitCode !== null)
        throw new Error(`the Temporal server ended: ${await readFile(logFile, 'utf8')}`);
      const connection = await Connection.connect({ address }).catch(() => undefined);
      await connection?.close();
      return connection !== undefined;
    },
    START_TIMEOUT_MS,
  );
  say(`Temporal ${VERSION} on Postgres is up at ${address}`);
  const chosen = process.argv.slice(2);
  const tests = spawn('npm', ['test', '--', ...(chosen.length === 0 ? ['test/e2e'] : chosen)], {
    cwd: projectRoot,
    env: { ...process.env, TEST_TEMPORAL_ADDRESS: address },
    stdio: 'inherit',
  });
  status = await new Promise<number>((resolve) => {
    tests.once('exit', (code) => resolve(code ?? 1));
  });
} finally {
  server.kill('SIGTERM');
  await ended;
  stopWatching();
  await log.close();
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
}
process.exit(status);
