import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { EmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { endProcess, endWithThisProcess } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { runOn } from '../../test/support/postgres-admin.ts';
import { copyForStandby, follow } from './standby.ts';
import type { TemporalServer } from '../temporal-server.ts';

async function pidOf(dataDir: string): Promise<number> {
  const [line] = (await readFile(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n');
  return Number(line);
}

async function isTrue(url: string, query: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, boolean>>(query);
    return Object.values(rows[0] ?? {})[0] === true;
  } finally {
    await client.end();
  }
}

interface Standby {
  readonly dataDir: string;
  readonly running: EmbeddedPostgres;
}

/** The database server, which can be stopped, killed and started again on its data. */
export class PostgresServer {
  #dataDir: string;
  #running: EmbeddedPostgres;
  #stopWatching: () => void = () => {};
  /** Ends the server that was the primary before. */
  #endFormer: () => Promise<void> = async () => {};
  #standbys = 0;

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
    return await pidOf(this.#dataDir);
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

  /** Changes settings of the running server. */
  async set(settings: Readonly<Record<string, string | number>>): Promise<void> {
    for (const [name, value] of Object.entries(settings))
      await runOn(this.ownerUrl, `alter system set ${name} = ${value}`);
    await runOn(this.ownerUrl, 'select pg_reload_conf()');
  }

  /** Gives settings their former values. */
  async reset(...names: readonly string[]): Promise<void> {
    for (const name of names) await runOn(this.ownerUrl, `alter system reset ${name}`);
    await runOn(this.ownerUrl, 'select pg_reload_conf()');
  }

  /** Starts a server that follows this one. Returns its data folder and what `startEmbeddedPostgres` returns. */
  async #startStandby(): Promise<Standby> {
    const dataDir = path.join(path.dirname(this.#dataDir), `standby-${(this.#standbys += 1)}`);
    await copyForStandby(this.#dataDir, this.ownerUrl, dataDir);
    const running = await startEmbeddedPostgres({ dataDir, durable: true });
    const followsWithin = 'select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), pg_last_wal_receive_lsn()) >= 0';
    await eventually('the standby follows', async () => await isTrue(running.ownerUrl, followsWithin));
    return { dataDir, running };
  }

  /** Makes a standby the primary. The server before it must have ended. */
  async #promote({ dataDir, running }: Standby): Promise<void> {
    this.#dataDir = dataDir;
    this.#running = running;
    await this.#watch();
    await runOn(this.ownerUrl, 'select pg_promote()');
  }

  /**
   * Starts a synchronous standby: from then on this server confirms only what the standby has on its disk, too. Returns a function that
   * ends this server as a machine that loses power, and promotes the standby, which then confirms alone.
   */
  async addStandby(): Promise<() => Promise<void>> {
    const standby = await this.#startStandby();
    await this.set({ synchronous_standby_names: "'*'" });
    const isSynchronous = `select count(*) = 1 from pg_stat_replication where sync_state in ('sync', 'quorum')`;
    await eventually('the standby is synchronous', async () => await isTrue(this.ownerUrl, isSynchronous));
    this.#endFormer = async () => await standby.running.stop();
    return async () => {
      this.#endFormer = async () => {};
      await this.stop('crash');
      await this.#promote(standby);
    };
  }

  /**
   * Makes a standby of this server, ends this server, promotes the standby, and starts the former primary again as a
   * standby of the new one. Returns the port of the former primary, which goes on and is read-only.
   */
  async failOver(): Promise<number> {
    await this.#endFormer();
    const former = this.#dataDir;
    const standby = await this.#startStandby();
    // A server that is stopped sends the rest of its log to its standbys first.
    await this.stop('fast');
    await this.#promote(standby);
    await follow(former, this.ownerUrl);
    const demoted = await startEmbeddedPostgres({ dataDir: former, durable: true });
    const stopWatching = endWithThisProcess(await pidOf(former), 'INT');
    this.#endFormer = async () => {
      stopWatching();
      await demoted.stop();
    };
    return Number(new URL(demoted.url).port);
  }

  /** Ends all servers. */
  async close(): Promise<void> {
    await this.#endFormer();
    await this.stop('fast');
  }

  /** Ends the server: `fast` as an administrator stops it, `crash` as a machine that loses power. */
  async stop(how: 'fast' | 'crash'): Promise<void> {
    const pid = await this.pid();
    this.#stopWatching();
    await (how === 'fast' ? this.#running.stop() : endProcess(pid, 'SIGKILL', 10_000));
  }

  /** Starts it if it has ended by itself. */
  async revive(): Promise<void> {
    if (await isTrue(this.ownerUrl, 'select true').catch(() => false)) return;
    this.#stopWatching();
    await this.startAgain();
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
