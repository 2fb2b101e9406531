import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import postgres from 'postgres';

/** A driver that has at most one connection. */
export type Client = postgres.Sql;

/** What the driver passes to its `socket` option. */
interface Destination {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** The path of a Unix socket. False without one. */
  readonly path: string | false;
}

/** Creates a driver with one connection, which opens its sockets with `openSocket`. */
export type CreateClient = (openSocket: (destination: Destination) => Socket) => Client;

/** The database did not respond within the limits of a statement. Whether the statement took effect is unknown. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** Too many statements wait for a connection already. The statement was not sent. */
export class PoolOverloaded extends Error {
  override readonly name = 'PoolOverloaded';
}

/** The pool was closed. The statement was not sent. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed';
}

export interface PoolOptions {
  /** Maximum number of connections. A probe of a silent database opens one more. */
  readonly max: number;
  /** Maximum number of statements that wait for a connection. */
  readonly maxWaiting: number;
  readonly createClient: CreateClient;
}

/** What a pool does at one moment. */
export interface PoolUsage {
  readonly max: number;
  /** Connections with a statement in flight. */
  readonly busy: number;
  readonly idle: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
}

/** A part of the pool: its statements have at most `max` connections at one time. */
export interface Share {
  readonly max: number;
  /** How many connections it has now. */
  inUse: number;
}

export interface StatementLimits {
  /** When the caller gives up, `performance.now()` ms. The connection finishes the statement. */
  readonly giveUpAt: number;
  /** How long the connection may take to respond before it is discarded, ms. */
  readonly respondWithinMs: number;
  /** The part of the pool that the statement belongs to. Null for all of it. */
  readonly share: Share | null;
}

/** How often the limits are checked, ms. */
const CHECK_MS = 100;
/** A check that is late by this much does nothing: responses that arrived meanwhile are read before the next one. */
const LATE_CHECK_MS = 1_000;
/** After this time without a response to a statement, a probe asks whether the database responds at all, ms. */
const SUSPECT_AFTER_MS = 1_500;
/** How long a probe waits for a response, ms. */
const PROBE_MS = 1_500;
/** The same while the database is silent: its return must be noticed soon. */
const SILENT_PROBE_MS = 1_000;
const SILENT_PROBE_PAUSE_MS = 250;
/** The pause after a probe that was answered: the statement is only slow. */
const ANSWERED_PROBE_PAUSE_MS = 5_000;
/** When the database responds again, connections that were silent for this long are discarded, ms. */
const LOST_AFTER_MS = 1_000;
/** After this time of silence, all connections are discarded, also those of statements that may take longer, ms. */
const SILENCE_LIMIT_MS = 5_000;
/** How long `close` waits for statements in flight, ms. */
const CLOSE_MS = 5_000;

interface Statement extends StatementLimits {
  readonly sentAt: number;
  readonly fail: (error: Error) => void;
}

/** A connection of the pool. `statement` is the one in flight, undefined while the connection is idle. */
class Connection {
  readonly client: Client;
  statement: Statement | undefined;
  /** The share that the statement in flight belongs to. */
  share: Share | null = null;
  /** When the last statement ended, `performance.now()` ms. */
  usedAt = 0;
  isDiscarded = false;
  readonly #sockets = new Set<Socket>();
  #attempts = 0;

  constructor(createClient: CreateClient) {
    this.client = createClient((destination) => this.#open(destination));
  }

  /**
   * Ends the connection at once, without waiting for the database. The driver alone would only close its side, and the
   * socket to a silent database would stay.
   */
  discard(): void {
    this.isDiscarded = true;
    const destroy = () => {
      for (const socket of this.#sockets) socket.destroy();
    };
    this.client.end({ timeout: 0 }).then(destroy, destroy);
  }

  /** Ends the connection after the statement in flight. */
  async end(): Promise<void> {
    await this.client.end({ timeout: CLOSE_MS / 1000 });
    this.discard();
  }

  #open({ host, port, path }: Destination): Socket {
    if (this.isDiscarded) throw new PoolClosed('the connection was discarded');
    // An address may list several hosts; each attempt takes the next one.
    const turn = this.#attempts % host.length;
    this.#attempts += 1;
    const hostname = host[turn] ?? 'localhost';
    const socket =
      path === false ? connectSocket({ host: hostname, port: port[turn] ?? 5432 }) : connectSocket({ path });
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    // The driver reads the name for TLS here.
    return Object.assign(socket, { host: hostname });
  }
}

/**
 * Whether Postgres refused a statement and the connection goes on. After any other error the driver may lose a statement
 * that is sent on the same connection, so it gets none.
 */
function isAnswer(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.severity === 'ERROR';
}

interface Waiter {
  readonly giveUpAt: number;
  readonly share: Share | null;
  readonly take: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

/**
 * A pool of connections to a database that may stop responding without closing its connections: a frozen host, a lost
 * network path. Every statement has a deadline that discards its connection, because nobody knows what an unanswered
 * connection will do next. While nothing responds, statements wait here instead of being sent, and short probes find out
 * when the database is back.
 *
 * A connection has one statement at a time, so no statement waits behind another one.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting: Waiter[] = [];
  #silentSince: number | null = null;
  #isProbing = false;
  #nextProbeAt = 0;
  #isClosed = false;
  #checks: NodeJS.Timeout | undefined;
  #checkedAt = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Runs a statement on a connection of its own. */
  async run<T>(send: (client: Client) => PromiseLike<T>, limits: StatementLimits): Promise<T> {
    const connection = await this.#acquire(limits);
    const work = async () => {
      try {
        return await send(connection.client);
      } catch (error) {
        if (!isAnswer(error)) this.#discard(connection);
        throw error;
      } finally {
        this.#release(connection);
      }
    };
    return await new Promise<T>((resolve, reject) => {
      connection.statement = { ...limits, sentAt: performance.now(), fail: reject };
      this.#startChecks();
      work().then(resolve, reject);
    });
  }

  get usage(): PoolUsage {
    const idle = this.#idle.length;
    return {
      max: this.#options.max,
      busy: this.#connections.size - idle,
      idle,
      waiting: this.#waiting.length,
    };
  }

  /** Ends all connections after their statements, for at most 5 s. Waiting statements fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const waiter of this.#waiting.splice(0)) waiter.fail(new PoolClosed('the pool was closed'));
    await Promise.all([...this.#connections].map(async (connection) => await connection.end()));
    clearInterval(this.#checks);
  }

  async #acquire({ giveUpAt, share }: StatementLimits): Promise<Connection> {
    if (this.#isClosed) throw new PoolClosed('the pool is closed');
    if (this.#waiting.length >= this.#options.maxWaiting) {
      throw new PoolOverloaded(`${this.#waiting.length} statements wait for a connection`);
    }
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ giveUpAt, share, take: resolve, fail: reject });
      this.#startChecks();
      this.#dispatch();
    });
  }

  /** Gives free connections to waiting statements, first come, first served, except those whose share is used up. */
  #dispatch(): void {
    while (this.#silentSince === null) {
      const next = this.#waiting.findIndex(({ share }) => share === null || share.inUse < share.max);
      if (next === -1) return;
      // The connection used last comes first, so that the others can reach the driver's idle time.
      const connection = this.#idle.pop() ?? this.#create();
      if (connection === undefined) return;
      const [waiter] = this.#waiting.splice(next, 1);
      connection.share = waiter?.share ?? null;
      if (connection.share !== null) connection.share.inUse += 1;
      waiter?.take(connection);
    }
  }

  #create(): Connection | undefined {
    if (this.#connections.size >= this.#options.max) return undefined;
    const connection = new Connection(this.#options.createClient);
    this.#connections.add(connection);
    return connection;
  }

  #release(connection: Connection): void {
    connection.statement = undefined;
    connection.usedAt = performance.now();
    this.#leaveShare(connection);
    if (!connection.isDiscarded) this.#idle.push(connection);
    this.#dispatch();
  }

  /** Discards a connection without a response, and the idle ones that were not heard of since: they share its fate. */
  #lose(connection: Connection, statement: Statement): void {
    this.#discard(connection);
    this.#discardIdle(({ usedAt }) => usedAt < statement.sentAt);
    statement.fail(new NoResponse('the database did not respond on this connection'));
    void this.#probeUntilAnswered();
    this.#dispatch();
  }

  #discard(connection: Connection): void {
    this.#connections.delete(connection);
    this.#leaveShare(connection);
    connection.discard();
  }

  #leaveShare(connection: Connection): void {
    if (connection.share !== null) connection.share.inUse -= 1;
    connection.share = null;
  }

  #discardIdle(isLost: (connection: Connection) => boolean): void {
    for (const connection of this.#idle.splice(0)) {
      if (isLost(connection)) this.#discard(connection);
      else this.#idle.push(connection);
    }
  }

  #startChecks(): void {
    if (this.#checks !== undefined) return;
    this.#checkedAt = performance.now();
    this.#checks = setInterval(() => this.#check(), CHECK_MS);
  }

  #check(): void {
    const now = performance.now();
    const isLate = now - this.#checkedAt > LATE_CHECK_MS;
    this.#checkedAt = now;
    if (isLate) return;
    const silentMs = this.#silentSince === null ? 0 : now - this.#silentSince;
    let isBusy = false;
    for (const connection of this.#connections) {
      const { statement } = connection;
      if (statement === undefined) continue;
      isBusy = true;
      const age = now - statement.sentAt;
      if (now > statement.giveUpAt) statement.fail(new NoResponse('the database did not respond in time'));
      if (age > statement.respondWithinMs || (silentMs > SILENCE_LIMIT_MS && age > LOST_AFTER_MS)) {
        this.#lose(connection, statement);
      }
      if (age > SUSPECT_AFTER_MS) void this.#probeUntilAnswered();
    }
    for (const waiter of this.#waiting.filter(({ giveUpAt }) => now > giveUpAt)) {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.fail(new NoResponse('no connection became free in time'));
    }
    if (!isBusy && this.#waiting.length === 0) {
      clearInterval(this.#checks);
      this.#checks = undefined;
    }
  }

  /** Probes the database until it responds. From the first probe without a response on, the database is silent. */
  async #probeUntilAnswered(): Promise<void> {
    const since = performance.now();
    if (this.#isProbing || since < this.#nextProbeAt) return;
    this.#isProbing = true;
    while (
      !this.#isClosed &&
      !(await this.#isAnswered(this.#silentSince === null ? PROBE_MS : SILENT_PROBE_MS))
    ) {
      this.#silentSince ??= since;
      await new Promise((resolve) => {
        setTimeout(resolve, SILENT_PROBE_PAUSE_MS);
      });
    }
    this.#isProbing = false;
    this.#nextProbeAt = performance.now() + ANSWERED_PROBE_PAUSE_MS;
    if (this.#silentSince !== null) this.#endSilence();
  }

  /** Discards the connections that the silence has left behind, and goes on. */
  #endSilence(): void {
    this.#silentSince = null;
    const now = performance.now();
    for (const connection of this.#connections) {
      const { statement } = connection;
      if (statement !== undefined && now - statement.sentAt > LOST_AFTER_MS)
        this.#lose(connection, statement);
    }
    this.#discardIdle(() => true);
    this.#dispatch();
  }

  /** Whether a new connection gets any response, be it an error. */
  async #isAnswered(withinMs: number): Promise<boolean> {
    const probe = new Connection(this.#options.createClient);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), withinMs);
    });
    const answer = probe.client`select 1`.then(
      () => true,
      () => true,
    );
    const isAnswered = await Promise.race([answer, late]);
    clearTimeout(timer);
    probe.discard();
    return isAnswered;
  }
}
