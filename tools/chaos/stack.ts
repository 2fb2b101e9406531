import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findTemporalProgram } from '../../temporal/local-server/program.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createDatabase } from '../../test/support/postgres-admin.ts';
import { environmentOf } from '../compose.ts';
import { buildTemporalServer, lowPort, runScript, startTemporalServer } from '../temporal-server.ts';
import type { TemporalServer } from '../temporal-server.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';
import { mountDisk } from './disk.ts';
import type { Disk } from './disk.ts';
import { startFaultyProxy } from './proxy.ts';
import type { FaultyProxy } from './proxy.ts';
import type { Random } from './random.ts';
import { PostgresServer, TemporalService } from './servers.ts';
import { ServiceProcess } from './service-process.ts';

const run = promisify(execFile);
export const TEMPORAL_DATABASES = ['temporal', 'temporal_visibility'] as const;
/** The domain of the sender of mails, which their `Message-ID` has. */
export const MAIL_DOMAIN = 'tributary.example';

/** All that runs: the topology of docker-compose.yml, with a proxy on every connection. */
export interface Stack {
  readonly postgres: PostgresServer;
  /** The file system of Postgres's data. Null if it has none of its own. */
  readonly disk: Disk | null;
  readonly temporal: TemporalService;
  readonly processes: readonly ServiceProcess[];
  readonly proxies: {
    /** From the service to Postgres. */
    readonly database: FaultyProxy;
    /** From the service to Temporal. */
    readonly temporal: FaultyProxy;
    /** From Temporal to Postgres. */
    readonly temporalDatabase: FaultyProxy;
    /** From the service to the mail server. */
    readonly mail: FaultyProxy;
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
  /** Adds to that of each process, in turn. */
  readonly environments?: readonly Readonly<Record<string, string>>[];
  /** The port of the mail server. Without one, no mail is sent. */
  readonly mailPort?: number;
  /** Whether the data of Postgres has a file system of its own. */
  readonly hasDisk?: boolean;
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

    const disk = options.hasDisk === true ? await mountDisk(path.join(folder, 'data')) : null;
    if (disk !== null) stops.push(disk.unmount);
    const postgres = await PostgresServer.start(path.join(folder, 'data/primary'));
    stops.push(async () => await postgres.close());
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
      mail: await startFaultyProxy(() => options.mailPort ?? 0, random.part('mail')),
    };
    stops.push(proxies.database.close, proxies.temporal.close, proxies.mail.close);

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
      // With servers of its own, a process writes no files: this folder can't exist.
      DATA_DIR: '/dev/null/nowhere',
      ...WITHOUT_LIMITS,
      RATE_LIMIT_REFUSALS: '0',
      ...(options.mailPort === undefined
        ? {}
        : {
            SMTP_URL: `smtp://127.0.0.1:${proxies.mail.port}`,
            MAIL_FROM: `Chaos <partners@${MAIL_DOMAIN}>`,
            PUBLIC_URL: `https://${MAIL_DOMAIN}`,
          }),
      ...options.environment,
    };
    const processes: ServiceProcess[] = [];
    for (let n = 0; n < options.processes; n += 1) {
      const logFile = path.join(folder, `service-${n}.log`);
      processes.push(
        new ServiceProcess({ api: await lowPort(), metrics: await lowPort() }, logFile, {
          ...environment,
          ...options.environments?.[n],
        }),
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
      disk,
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
