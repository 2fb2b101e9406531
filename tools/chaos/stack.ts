import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findTemporalProgram } from '../../temporal/local-server/program.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { EmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { endProcess, endWithThisProcess, tryListen } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createDatabase } from '../../test/support/postgres-admin.ts';
import { environmentOf } from '../compose.ts';
import { buildTemporalServer, runScript, startTemporalServer } from '../temporal-server.ts';
import type { TemporalServer } from '../temporal-server.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';
import { send } from './answers.ts';
import { startFaultyProxy } from './proxy.ts';
import type { FaultyProxy } from './proxy.ts';
import type { Random } from './random.ts';

const run = promisify(execFile);
export const TEMPORAL_DATABASES = ['temporal', 'temporal_visibility'] as const;
const START_TIMEOUT_MS = 180_000;
/** A client notices the end of a process a little later or, with a request in flight, had sent it earlier. */
const NOTICE_MS = 2_000;

/** One process of the service, behind an address that it keeps when it is started again. */
export class ServiceProcess {
  readonly base: string;
  readonly metricsBase: string;
  readonly logFile: string;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #log: FileHandle | undefined;
  #stopWatching = (): void => {};
  #ended: Promise<void> = Promise.resolve();
  /** Exits that nobody asked for. */
  readonly crashes: string[] = [];
  #isEnding = false;
  #isUp = false;
  #hasEnded = false;
  /** When it did not run or did not move, epoch ms. The last interval may be open. */
  readonly #away: { readonly from: number; to: number }[] = [];

  constructor(
    ports: { readonly api: number; readonly metrics: number },
    logFile: string,
    environment: Readonly<Record<string, string>>,
  ) {
    this.base = `http://127.0.0.1:${ports.api}`;
    this.metricsBase = `http://127.0.0.1:${ports.metrics}`;
    this.logFile = logFile;
    this.#environment = { ...environment, PORT: String(ports.api), METRICS_PORT: String(ports.metrics) };
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process. It is usable when `whenReady` has returned. */
  async start(): Promise<void> {
    this.#log = await open(this.logFile, 'a');
    const child = spawn(process.execPath, ['--enable-source-maps', 'dist/src/main.js'], {
      cwd: projectRoot,
      env: { PATH: process.env['PATH'] ?? '', ...this.#environment },
      stdio: ['ignore', this.#log.fd, this.#log.fd],
    });
    this.#child = child;
    this.#stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
    const log = this.#log;
    this.#isEnding = false;
    this.#isUp = false;
    this.#hasEnded = false;
    this.#ended = new Promise((resolve) => {
      child.once('exit', (status, signal) => {
        this.#stopWatching();
        this.#hasEnded = true;
        // A start that fails is tried again, as Compose does.
        if (!this.#isEnding && this.#isUp)
          this.crashes.push(`ended by itself with ${status ?? signal}: ${this.logFile}`);
        void log.close().then(resolve);
      });
    });
  }

  /** Waits until it answers requests. */
  async whenReady(): Promise<void> {
    await eventually(
      `the process at ${this.base} answers (${this.logFile})`,
      async () => {
        if (this.#hasEnded) await this.start();
        return await send(this.base, 'GET', '/healthz').then(
          ({ status }) => status === 200,
          () => false,
        );
      },
      START_TIMEOUT_MS,
    );
    this.#isUp = true;
    const last = this.#away.at(-1);
    if (last?.to === Infinity) last.to = Date.now() + NOTICE_MS;
  }

  /** Ends it by a signal and waits until it has ended. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#noteAway();
    this.#isEnding = true;
    this.#child?.kill(signal);
    await this.#ended;
  }

  /** Stops its clock: it keeps its connections, and neither reads nor answers. */
  freeze(): void {
    this.#noteAway();
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
    const last = this.#away.at(-1);
    if (last !== undefined) last.to = Date.now() + NOTICE_MS;
  }

  #noteAway(): void {
    this.#away.push({ from: Date.now() - NOTICE_MS, to: Infinity });
  }

  /** Whether it was away at some time of that interval. */
  wasAway(from: number, to: number): boolean {
    return this.#away.some((interval) => interval.from <= to && interval.to >= from);
  }
}

/** The database server, which can be stopped, killed and started again on its data. */
export class PostgresServer {
  readonly #dataDir: string;
  #running: EmbeddedPostgres;
  #stopWatching: () => void = () => {};

  private constructor(dataDir: string, running: EmbeddedPostgres) {
    this.#dataDir = dataDir;
    this.#running = running;
  }

  /** Starts Postgres as in production: what it has confirmed is on the disk. */
  static async start(dataDir: string): Promise<PostgresServer> {
    const server = new PostgresServer(dataDir, await startEmbeddedPostgres({ dataDir, durable: true }));
    await server.#watch();
    return server;
  }

  async #watch(): Promise<void> {
    this.#stopWatching = endWithThisProcess(await this.pid(), 'INT');
  }

  async pid(): Promise<number> {
    const [line] = (await readFile(path.join(this.#dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n');
    return Number(line);
  }

  get port(): number {
    return Number(new URL(this.#running.url).port);
  }

  get ownerUrl(): string {
    return this.#running.ownerUrl;
  }

  get serviceUrl(): string {
    return this.#running.url;
  }

  /** Ends the server: `fast` as an administrator stops it, `crash` as a machine that loses power. */
  async stop(how: 'fast' | 'crash'): Promise<void> {
    const pid = await this.pid();
    this.#stopWatching();
    await (how === 'fast' ? this.#running.stop() : endProcess(pid, 'SIGKILL', 10_000));
  }

  async startAgain(): Promise<void> {
    // The recovery may take a while, and children of a killed server end a little later.
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#running = await startEmbeddedPostgres({ dataDir: this.#dataDir, durable: true });
        await this.#watch();
        return;
      } catch (error) {
        if (attempt === 5) throw error;
        await sleep(1_000);
      }
    }
  }
}

/** The Temporal server, behind an address that stays. */
export class TemporalService {
  readonly #start: () => Promise<TemporalServer>;
  #running: TemporalServer;

  private constructor(start: () => Promise<TemporalServer>, running: TemporalServer) {
    this.#start = start;
    this.#running = running;
  }

  static async start(start: () => Promise<TemporalServer>): Promise<TemporalService> {
    return new TemporalService(start, await start());
  }

  get port(): number {
    return Number(new URL(`http://${this.#running.address}`).port);
  }

  async stop(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#running.stop(how);
  }

  async startAgain(): Promise<void> {
    this.#running = await this.#start();
  }

  /** Starts it if it has ended by itself, as Compose does. Returns whether it had. */
  async revive(): Promise<boolean> {
    if (this.#running.isRunning()) return false;
    await this.startAgain();
    return true;
  }
}

/** All that runs: the topology of docker-compose.yml, with a proxy on every connection. */
export interface Stack {
  readonly postgres: PostgresServer;
  readonly temporal: TemporalService;
  readonly processes: readonly ServiceProcess[];
  readonly proxies: {
    /** From the service to Postgres. */
    readonly database: FaultyProxy;
    /** From the service to Temporal. */
    readonly temporal: FaultyProxy;
    /** From Temporal to Postgres. */
    readonly temporalDatabase: FaultyProxy;
  };
  /** A connection that no fault touches, with the rights of the owner. A stopped Postgres does end it. */
  readonly sql: () => Sql;
  /** Runs the operator's command line, past the proxies, and returns what it prints. */
  readonly admin: (...args: readonly string[]) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/**
 * Starts Postgres, the production Temporal server on it, and the processes of the service with the role that can only
 * read and write rows. `environment` adds to that of the processes.
 */
export async function startStack(options: {
  readonly folder: string;
  readonly processes: number;
  readonly random: Random;
  readonly environment?: Readonly<Record<string, string>>;
  readonly say: (line: string) => void;
}): Promise<Stack> {
  const { folder, random, say } = options;
  await buildTemporalServer(say);
  const stops: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (const one of stops.splice(0).toReversed()) await one();
  };
  try {
    return await start();
  } catch (error) {
    await stop();
    throw error;
  }

  async function start(): Promise<Stack> {
    const programs = path.join(folder, 'programs');
    await mkdir(programs, { recursive: true });
    await cp(await findTemporalProgram({ onProgress: say }), path.join(programs, 'temporal'));

    const postgres = await PostgresServer.start(path.join(folder, 'data'));
    stops.push(async () => await postgres.stop('fast'));
    for (const name of TEMPORAL_DATABASES) await createDatabase(postgres.ownerUrl, name);

    const temporalDatabase = await startFaultyProxy(() => postgres.port, random.part('temporal database'));
    const owner = new URL(postgres.ownerUrl);
    let ports: TemporalServer['ports'] | undefined;
    const temporal = await TemporalService.start(async () => {
      const server = await startTemporalServer({
        postgres: { host: '127.0.0.1', port: String(temporalDatabase.port) },
        user: owner.username,
        password: decodeURIComponent(owner.password),
        logFile: path.join(folder, 'temporal.log'),
        ...(ports === undefined ? {} : { ports }),
      });
      ports = server.ports;
      const namespace = environmentOf('temporal-namespace', {});
      await runScript(
        'temporal/set-up-namespace.sh',
        { ...namespace, TEMPORAL_ADDRESS: server.address },
        programs,
      );
      return server;
    });
    stops.push(temporalDatabase.close, async () => await temporal.stop('SIGTERM'));
    const proxies = {
      temporalDatabase,
      database: await startFaultyProxy(() => postgres.port, random.part('database')),
      temporal: await startFaultyProxy(() => temporal.port, random.part('temporal')),
    };
    stops.push(proxies.database.close, proxies.temporal.close);

    const secrets = { SECRETS_KEY: randomBytes(32).toString('base64'), RATES_URL: 'off' };
    const admin = async (...args: readonly string[]) => {
      const { stdout } = await run(process.execPath, ['dist/src/cli/main.js', ...args], {
        cwd: projectRoot,
        maxBuffer: 256 * 1024 * 1024,
        env: {
          PATH: process.env['PATH'] ?? '',
          ...secrets,
          DATABASE_URL: postgres.serviceUrl,
          MIGRATIONS_DATABASE_URL: postgres.ownerUrl,
        },
      });
      return stdout;
    };
    await admin('migrate');

    const serviceUrl = new URL(postgres.serviceUrl);
    serviceUrl.port = String(proxies.database.port);
    const environment = {
      ...secrets,
      NODE_ENV: 'production',
      DATABASE_URL: serviceUrl.toString(),
      TEMPORAL_ADDRESS: `127.0.0.1:${proxies.temporal.port}`,
      LOG_LEVEL: 'warn',
      ...WITHOUT_LIMITS,
      RATE_LIMIT_REFUSALS: '0',
      ...options.environment,
    };
    const processes: ServiceProcess[] = [];
    for (let n = 0; n < options.processes; n += 1) {
      const logFile = path.join(folder, `service-${n}.log`);
      processes.push(
        new ServiceProcess({ api: await tryListen(0), metrics: await tryListen(0) }, logFile, environment),
      );
    }
    stops.push(async () => {
      await Promise.all(processes.map(async (one) => await one.end('SIGTERM')));
    });
    for (const one of processes) await one.start();
    await Promise.all(processes.map(async (one) => await one.whenReady()));
    let sql = connect({ url: postgres.ownerUrl, max: 2 });
    let connectedTo = postgres.ownerUrl;
    stops.push(async () => await sql.close());
    return {
      postgres,
      temporal,
      processes,
      proxies,
      admin,
      stop,
      sql: () => {
        if (connectedTo !== postgres.ownerUrl) {
          void sql.close();
          connectedTo = postgres.ownerUrl;
          sql = connect({ url: connectedTo, max: 2 });
        }
        return sql;
      },
    };
  }
}
