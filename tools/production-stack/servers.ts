import { randomBytes } from 'node:crypto';
import { cp, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { findTemporalProgram } from '../../temporal/local-server/program.ts';
import { environmentOf, readCompose } from '../compose.ts';
import type { Variables } from '../compose.ts';
import { say } from '../run-tool.ts';
import { runScript, startTemporalServer } from '../temporal-server.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';
import { BALANCER_LIMITS } from './balancer.ts';
import type { Stops } from './haproxy.ts';
import { start } from './image.ts';
import type { Image } from './image.ts';

/** The built-in Postgres has a database `tributary` already. */
const DATABASE = 'tributary_production';
const DRAIN_SECONDS = 4;
const PASSWORDS = ['OWNER_PASSWORD', 'SERVICE_PASSWORD', 'TEMPORAL_PASSWORD'] as const;

const password = () => randomBytes(24).toString('hex');

type Environment = Readonly<Record<string, string>>;

/** The variables of .env that the stack is started with, here. */
export type StackVariables = Readonly<Record<(typeof PASSWORDS)[number], string>> & Environment;

/** Returns the variables for a Postgres that is reached at `host` and `port`. `ownerUrl` has the name and password of its superuser. */
export function stackVariables(ownerUrl: string, host: string, port: string): StackVariables {
  const owner = new URL(ownerUrl);
  return {
    PUBLIC_URL: 'https://tributary.example.com',
    SECRETS_KEY: randomBytes(32).toString('base64'),
    POSTGRES_HOST: host,
    POSTGRES_PORT: port,
    POSTGRES_USER: owner.username,
    POSTGRES_PASSWORD: decodeURIComponent(owner.password),
    OWNER_PASSWORD: password(),
    SERVICE_PASSWORD: password(),
    TEMPORAL_PASSWORD: password(),
    DRAIN_SECONDS: String(DRAIN_SECONDS),
    RATES_URL: 'off',
    LOG_LEVEL: 'info',
    MAX_CONNECTIONS_PER_ADDRESS: String(BALANCER_LIMITS.connectionsPerAddress),
    TRUSTED_PROXIES: BALANCER_LIMITS.proxyAddress,
    ...WITHOUT_LIMITS,
  };
}

/** Returns the environment of a service of docker-compose.yml, with the database of this run. */
export function environmentHere(service: string, variables: Variables): Environment {
  return Object.fromEntries(
    Object.entries(environmentOf(service, variables)).map(([name, value]) => [
      name,
      value.replace('/tributary?', `/${DATABASE}?`),
    ]),
  );
}

/** Creates roles and databases, twice: an update runs the script again. Throws if the log of the server shows a password. */
export async function setUpDatabases(variables: StackVariables, serverLog: string): Promise<void> {
  for (let time = 1; time <= 2; time += 1) {
    // A server that logs every statement shows what the script sends.
    const environment = {
      ...environmentOf('databases', variables),
      TRIBUTARY_DATABASE: DATABASE,
      PGOPTIONS: '-c log_statement=all',
    };
    await runScript('postgres/set-up.sh', environment);
  }
  const statements = await readFile(serverLog, 'utf8');
  if (!statements.includes("PASSWORD 'SCRAM-SHA-256$"))
    throw new Error('the log of Postgres has no statement that sets a password');
  for (const name of PASSWORDS)
    if (statements.includes(variables[name])) throw new Error(`the log of Postgres shows ${name}`);
}

/** Creates the namespace of a Temporal server, twice. `folder` receives the program that the script calls. */
export async function setUpNamespace(variables: Variables, address: string, folder: string): Promise<void> {
  const programs = path.join(folder, 'programs');
  await mkdir(programs, { recursive: true });
  await cp(await findTemporalProgram({ onProgress: say }), path.join(programs, 'temporal'));
  for (let time = 1; time <= 2; time += 1) {
    const environment = { ...environmentOf('temporal-namespace', variables), TEMPORAL_ADDRESS: address };
    await runScript('temporal/set-up-namespace.sh', environment, programs);
  }
  say(`The production Temporal server is up at ${address}, with its namespace`);
}

/** Migrates the database in the image, twice. */
export async function migrate(image: Image, variables: Variables): Promise<void> {
  const { command = [] } = readCompose().services['migrations'] ?? {};
  for (let time = 1; time <= 2; time += 1) {
    const { ended, errors } = start(image, command, environmentHere('migrations', variables));
    if ((await ended) !== 0) throw new Error(`the migrations failed: ${errors()}`);
  }
}

/** Starts a Postgres with its roles and a production Temporal server with its namespace. `over` replaces variables. */
export async function startServers(
  folder: string,
  stops: Stops,
  over: Environment = {},
): Promise<{ readonly variables: StackVariables; readonly temporalAddress: string }> {
  const dataDir = path.join(folder, 'data');
  const running = await startEmbeddedPostgres({ dataDir, durable: false, onProgress: say });
  stops.push(() => running.stop());
  const { hostname: host, port } = new URL(running.ownerUrl);
  const variables = { ...stackVariables(running.ownerUrl, host, port), ...over };
  await setUpDatabases(variables, path.join(dataDir, 'postgres.log'));
  const temporal = await startTemporalServer({
    postgres: { host, port },
    password: variables.TEMPORAL_PASSWORD,
    logFile: path.join(folder, 'temporal.log'),
  });
  stops.push(temporal.stop);
  await setUpNamespace(variables, temporal.address, folder);
  return { variables, temporalAddress: temporal.address };
}
