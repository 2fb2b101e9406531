import { fork, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { openBackends } from '../../src/backends.ts';
import { readConfig } from '../../src/config/config.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { connect } from '../../src/db/sql.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../provider-payloads.ts';
import { HttpSocket } from './http-socket.ts';
import { postmasterOf, processesWith, processorTimeMs } from './processor-time.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';
import { createBenchApp } from './support.ts';
import { insertPolicy } from './insert-policy.ts';

/*
 * Postgres, a Temporal server and what is measured on them. Each subject is a process of its own, so that neither the load nor
 * another subject shares its thread.
 */

/** The folder of what the service is compared with. It has a package.json of its own. */
export const PEERS = path.join(projectRoot, 'tools/bench/peers');
const PEER_SECRET = 'whsec_bench_0123456789abcdef';
const SECRETS_KEY = Buffer.alloc(32, 7).toString('base64');
const POLL_MS = 20;
/** How long the start of the last hold timer is waited for. */
const SETTLE_MS = 60_000;

/** Something that receives signed purchases. */
export interface Subject {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  readonly path: string;
  /** The secret that signs the purchases. */
  readonly secret: string;
  /** The users who purchase, in turn. */
  readonly users: readonly string[];
  /** Waits until the work behind the answers is done: until each commission has its hold timer. */
  readonly settled: () => Promise<void>;
}

/** A process of the service. */
export interface TributarySubject extends Subject {
  readonly base: string;
  /** An account key that may do all but pay. */
  readonly key: string;
  readonly appId: string;
}

/** Processor time, ms. */
export interface ProcessorTime {
  readonly node: number;
  readonly temporal: number;
  readonly postgres: number;
}

export interface Stack {
  /** Creates a database, and returns its address. */
  readonly createDatabase: (name: string) => Promise<string>;
  /** Analyzes the tables of a database. */
  readonly analyze: (databaseUrl: string) => Promise<void>;
  /** Starts a process of the service, and creates an app with users whom creators have brought, in turn. */
  readonly startTributary: (options: TributaryOptions) => Promise<TributarySubject>;
  /** Starts another process of the service beside a subject, on the same database. It receives the same purchases. */
  readonly startSecond: (first: Subject, databaseUrl: string) => Promise<Subject>;
  readonly startDbos: (users: readonly string[]) => Promise<Subject>;
  /** `six`: a workflow of six regular activities. `bare`: eager start, an empty local activity, and a hold timer behind it. */
  readonly startTemporal: (shape: 'six' | 'bare', users: readonly string[]) => Promise<Subject>;
  readonly processorTime: (subject: Subject) => ProcessorTime;
  /** Ends all processes, and removes their data. */
  readonly stop: () => Promise<void>;
}

export interface TributaryOptions {
  readonly name: string;
  readonly databaseUrl: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly creators: number;
  readonly users: number;
  /** Whether the app has a policy. */
  readonly hasPolicy?: boolean;
}

/** Runs `work` on a connection of its own. */
async function onDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A Temporal server that is measured. */
export interface MeasuredTemporal {
  readonly address: string;
  /** The processor time that it has used, ms. */
  readonly processorTimeMs: () => number;
}

/** Starts Postgres with fsync and, unless another one is given, the built-in Temporal server. */
export async function startStack(given?: MeasuredTemporal): Promise<Stack> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
  const backends = await openBackends(
    readConfig({
      LOG_LEVEL: 'error',
      DATA_DIR: dataDir,
      RATES_URL: 'off',
      ...(given === undefined ? {} : { TEMPORAL_ADDRESS: given.address, SECRETS_KEY }),
    }),
    () => {},
  );
  const temporalAddress = given?.address ?? backends.temporal.connection.address ?? '';
  const connection = await Connection.connect({ address: temporalAddress });
  const temporal = new Client({ connection });
  const children: ChildProcess[] = [];
  const postmaster = postmasterOf(dataDir);
  const temporalServers = processesWith(path.join(dataDir, 'temporal'));

  const admin = backends.migrationsDatabaseUrl;
  await onDatabase(admin, async (client) => {
    await client.query(`alter system set max_wal_size = '4GB'`);
    await client.query('select pg_reload_conf()');
  });
  const createDatabase = async (name: string) => {
    await onDatabase(admin, async (client) => await client.query(`create database ${name}`));
    const url = new URL(admin);
    url.pathname = `/${name}`;
    return url.href;
  };

  const startProcess = async (databaseUrl: string, environment: Readonly<Record<string, string>>) => {
    const child = spawn(process.execPath, [path.join(projectRoot, 'dist/src/main.js')], {
      cwd: projectRoot,
      env: {
        PATH: process.env['PATH'] ?? '',
        DATABASE_URL: databaseUrl,
        TEMPORAL_ADDRESS: temporalAddress,
        SECRETS_KEY,
        PORT: '0',
        LOG_LEVEL: 'error',
        RATES_URL: 'off',
        ...WITHOUT_LIMITS,
        ...environment,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.push(child);
    const base = await new Promise<string>((resolve, reject) => {
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
        stderr += chunk;
        const [, url] = /is up at (\S+)/.exec(stderr) ?? [];
        if (url !== undefined) resolve(url);
      });
      child.once('exit', (status) => reject(new Error(`the service ended with ${status}: ${stderr}`)));
    });
    return { child, base, port: Number(new URL(base).port) };
  };

  /** Waits until the newest commission has its hold timer. They start in order, two at a time. */
  const holdsStarted = async (databaseUrl: string) => {
    const newest = await onDatabase(databaseUrl, async (client) => {
      const { rows } = await client.query<{ id: string }>(
        'select id from commissions order by id desc limit 1',
      );
      return rows[0]?.id;
    });
    const giveUpAt = Date.now() + SETTLE_MS;
    if (newest === undefined) return;
    while (Date.now() < giveUpAt) {
      const isKnown = await temporal.workflow
        .getHandle(`hold:${newest}`)
        .describe()
        .then(() => true)
        .catch(() => false);
      if (isKnown) return;
      await sleep(POLL_MS);
    }
  };

  const startTributary = async (options: TributaryOptions): Promise<TributarySubject> => {
    const { name, databaseUrl, environment = {}, creators, users, hasPolicy = false } = options;
    const { child, base, port } = await startProcess(databaseUrl, environment);
    const sql = connect({ url: databaseUrl, max: 1 });
    const account = await createAccount(sql, 'Bench');
    const { key } = await createAccountKey(sql, account.id, ['read', 'write', 'setup']);
    await sql.close();
    const app = await createBenchApp(base, key, { creators, users });
    if (hasPolicy) await onDatabase(databaseUrl, async (client) => await insertPolicy(client, app.appId));
    const hasTimers = environment['HOLD_TIMERS'] !== 'sweep';
    return {
      name,
      process: child,
      port,
      path: `/webhooks/stripe/${app.appId}`,
      secret: app.stripeSecret,
      base,
      key,
      appId: app.appId,
      users: app.users,
      settled: async () => (hasTimers ? await holdsStarted(databaseUrl) : undefined),
    };
  };

  const startPeer = async (
    name: string,
    users: readonly string[],
    file: string,
    args: readonly string[],
  ): Promise<Subject> => {
    if (!existsSync(path.join(PEERS, 'node_modules'))) {
      throw new Error(`run npm ci --prefix ${PEERS}: what the service is compared with is not installed`);
    }
    const child = fork(path.join(PEERS, file), [...args], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    children.push(child);
    const ended = once(child, 'exit').then(([status]) => {
      throw new Error(`${name} ended with ${status}`);
    });
    const [{ port }] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
    ended.catch(() => {});
    const settled = async () => {
      if (args[0] !== 'bare') return;
      const socket = await HttpSocket.open(port);
      for (;;) {
        const { body } = await socket.post('/', '', { 'x-bench': 'waiting' });
        if ((JSON.parse(body) as { waiting: number }).waiting === 0) break;
        await sleep(POLL_MS);
      }
      socket.close();
    };
    return { name, process: child, port, path: '/', secret: PEER_SECRET, users, settled };
  };

  return {
    createDatabase,
    analyze: async (databaseUrl) =>
      await onDatabase(databaseUrl, async (client) => void (await client.query('analyze'))),
    startTributary,
    startSecond: async (first, databaseUrl) => {
      const { child, port } = await startProcess(databaseUrl, {});
      return { ...first, process: child, port };
    },
    startDbos: async (users) =>
      await startPeer('DBOS, six steps', users, 'dbos.mjs', [
        await createDatabase('dbos_steps'),
        await createDatabase('dbos_system'),
        PEER_SECRET,
        users.join(','),
      ]),
    startTemporal: async (shape, users) =>
      await startPeer(
        shape === 'six' ? 'six regular activities' : 'bare Temporal shape',
        users,
        'temporal.mjs',
        [shape, temporalAddress, await createDatabase(`temporal_${shape}`), PEER_SECRET, users.join(',')],
      ),
    processorTime: (subject) => ({
      node: processorTimeMs(subject.process.pid ?? 0),
      temporal:
        given?.processorTimeMs() ?? temporalServers.reduce((sum, server) => sum + processorTimeMs(server), 0),
      postgres: processorTimeMs(postmaster),
    }),
    stop: async () => {
      for (const child of children) {
        const ended = child.exitCode === null ? once(child, 'exit') : Promise.resolve();
        child.kill('SIGKILL');
        await ended;
      }
      await connection.close();
      await backends.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** What became of purchases. */
export interface Sent {
  /** How long each answer took, ms, in the order of the answers. */
  readonly times: readonly number[];
  /** Answers that came before the commission: the machine was too slow. */
  readonly pending: number;
}

/**
 * Sends signed purchases to subjects in turn until `isDone` holds, `inFlight` at a time. Throws when one fails, or earns
 * nothing.
 */
export async function sendPurchases(
  subjects: readonly Subject[],
  inFlight: number,
  isDone: (sent: number) => boolean,
): Promise<Sent> {
  const times: number[] = [];
  let [sent, pending] = [0, 0];
  const sendOneByOne = async (worker: number) => {
    const subject = subjects[worker % subjects.length];
    if (subject === undefined) return;
    const socket = await HttpSocket.open(subject.port);
    while (!isDone(sent)) {
      sent += 1;
      const userId = subject.users[sent % subject.users.length] ?? '';
      const body = bodyOf(stripeInvoicePaid({ userId, amount: 1_999, occurredAt: Date.now() }));
      const signature = signStripe(body, subject.secret, Math.floor(Date.now() / 1000));
      const begin = performance.now();
      const answer = await socket.post(subject.path, body.toString(), { 'stripe-signature': signature });
      times.push(performance.now() - begin);
      if (answer.body.includes('"pending":true')) pending += 1;
      else if (answer.status !== 200 || !answer.body.includes('"commissionId":"com_'))
        throw new Error(`${subject.name}: ${answer.status} ${answer.body}`);
    }
    socket.close();
  };
  await Promise.all(Array.from({ length: inFlight }, (_, worker) => sendOneByOne(worker)));
  return { times, pending };
}
