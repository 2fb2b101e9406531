import { setTimeout as sleep } from 'node:timers/promises';
import { CLOSE_MS, Connection, hasRoom, isAnswer, NoResponse, PoolClosed, withOuter } from './connection.ts';
import type { Client, CreateClient, Share, Statement, StatementLimits } from './connection.ts';

/** Too many statements wait for a connection already. The statement was not sent. */
export class PoolOverloaded extends Error {
  override readonly name = 'PoolOverloaded';
}

export interface PoolOptions {
  /** Maximum number of connections. A probe of a silent database opens one more. */
  readonly max: number;
  /** Maximum number of statements of a share, and of those without one, that wait for a connection. */
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

/** How often the limits are checked, ms. */
const CHECK_MS = 100;
/** After this time without any answer, with a statement in flight, a probe asks whether the database responds at all, ms. */
const SUSPECT_AFTER_MS = 1_500;
/** After this time of probes without an answer the database is silent, and no statement is sent, ms. */
const SILENT_AFTER_MS = 1_500;
/** How often a new connection probes at first, ms: on a network that has lost the others, only a new one gets an answer. */
const PROBE_PAUSE_MS = 750;
/** The longest pause between two probes, ms. Each is longer than the one before: a login costs a server without processor time most. */
const LONGEST_PROBE_PAUSE_MS = 1_500;
/** How long a probe waits for its answer, ms. */
const PROBE_MS = 3_000;
/** One of the probes waits for longer: a login on a machine without processor time takes its time, ms. */
const PATIENT_PROBE_MS = 30_000;
/** How long an idle connection may take to answer whether it still works, ms, if another connection was heard meanwhile. */
const PING_MS = 4_000;
/** When the database responds again, a connection from before has this long to answer, too, ms. */
const GRACE_MS = 1_000;
/** Which statements are from before: those that have been in flight for this long, ms. */
const LOST_AFTER_MS = 1_000;
/** After this time of silence, all connections with a statement are discarded, also those of statements that may take longer, ms. */
const SILENCE_LIMIT_MS = 10_000;
/** How many connections log in at one time: a login costs the server more than a statement. */
const MOST_OPENING = 4;
/** After all connections were closed, they are kept for this time at least: logins cost the server more than statements, ms. */
const RENEW_PAUSE_MS = 2_000;

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
  /** When the last answer came, on any connection, in pool time. */
  #answeredAt = 0;
  #wake: () => void = () => {};
  /** How long the event loop was blocked in all, ms. */
  #blockedMs = 0;
  #isClosed = false;
  #checks: NodeJS.Timeout | undefined;
  #checkedAt = 0;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /**
   * Runs a statement, or the statements of a transaction, on a connection of its own. After `hold`, the driver can't replace the
   * connection by a new one: a transaction ends with it.
   */
  async run<T>(
    send: (client: Client, hold: () => void) => PromiseLike<T>,
    limits: StatementLimits,
  ): Promise<T> {
    const connection = await this.#acquire(limits);
    const work = async () => {
      try {
        const result = await send(connection.client, () => {
          connection.isHeld = true;
        });
        this.#noteAnswer(connection.statement?.sentAt);
        return result;
      } catch (error) {
        if (isAnswer(error)) this.#noteAnswer(connection.statement?.sentAt);
        else this.#discard(connection);
        throw error;
      } finally {
        this.#release(connection);
      }
    };
    return await new Promise<T>((resolve, reject) => {
      this.#startChecks();
      connection.statement = { ...limits, sentAt: this.#poolTime(), answerBy: Infinity, fail: reject };
      connection.working = work().then(resolve, reject);
    });
  }

  get usage(): PoolUsage {
    return {
      max: this.#options.max,
      busy: this.#connections.size - this.#idle.length,
      idle: this.#idle.length,
      waiting: this.#waiting.length,
    };
  }

  /** Discards all connections, those with a statement after it. Does nothing within `RENEW_PAUSE_MS` after the last time. */
  renew(): void {
    const now = performance.now();
    if (now - this.#renewedAt < RENEW_PAUSE_MS) return;
    this.#renewedAt = now;
    this.#discardIdle(() => true);
  }

  /** Ends all connections after their statements and transactions, for at most 5 s. Waiting statements fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    for (const waiter of this.#waiting.splice(0)) waiter.fail(new PoolClosed('the pool was closed'));
    await Promise.all(
      [...this.#connections].map(async (connection) => {
        const isDone = Promise.resolve(connection.working).then(() => true);
        const isPing = connection.statement?.isPing === true;
        if (isPing || !(await Promise.race([isDone, sleep(CLOSE_MS, false, { ref: false })])))
          this.#discard(connection);
        else await connection.end();
      }),
    );
    clearInterval(this.#checks);
  }

  #acquire({ giveUpAt, share, isUrgent = false }: StatementLimits): Promise<Connection> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new PoolClosed('the pool is closed');
      // Each share has room of its own: what one account sends refuses no webhook and no health check.
      const waiting = this.#waiting.filter((waiter) => waiter.share === share).length;
      if (waiting >= this.#options.maxWaiting) {
        throw new PoolOverloaded(`${waiting} statements of this part of the pool wait for a connection`);
      }
      this.#waiting[isUrgent ? 'unshift' : 'push']({ giveUpAt, share, take: resolve, fail: reject });
      this.#startChecks();
      this.#dispatch();
    });
  }

  /** Gives free connections to waiting statements in their order, except those whose share is used up. */
  #dispatch(): void {
    while (this.#silentSince === null) {
      const next = this.#waiting.findIndex(({ share }) => hasRoom(share));
      if (next === -1) return;
      // The connection used last comes first, so that the others can reach the driver's idle time.
      const connection = this.#idle.pop() ?? this.#create();
      if (connection === undefined) return;
      const [waiter] = this.#waiting.splice(next, 1);
      connection.share = waiter?.share ?? null;
      for (const share of withOuter(connection.share)) share.inUse += 1;
      waiter?.take(connection);
    }
  }

  #create(): Connection | undefined {
    let opening = 0;
    for (const { isOpen } of this.#connections) if (!isOpen) opening += 1;
    if (opening >= MOST_OPENING) return undefined;
    if (this.#connections.size >= this.#options.max) {
      // An idle connection that may be lost is given up where its place is needed, and not before.
      const lost = [...this.#connections].find(
        ({ statement }) => statement?.isPing === true && this.#poolTime() - statement.sentAt > PING_MS,
      );
      if (lost === undefined) return undefined;
      this.#discard(lost);
    }
    const connection = new Connection(this.#options.createClient, () => this.#dispatch());
    this.#connections.add(connection);
    return connection;
  }

  #release(connection: Connection): void {
    connection.isHeld = false;
    connection.statement = undefined;
    connection.usedAt = this.#poolTime();
    this.#leaveShare(connection);
    if (connection.createdAt < this.#renewedAt) this.#discard(connection);
    if (!connection.isDiscarded) this.#idle.push(connection);
    this.#dispatch();
  }

  /** Discards a connection without a response, and asks the idle ones that were not heard of since: they may have failed with it. */
  #discardUnanswered(connection: Connection, statement: Statement): void {
    this.#discard(connection);
    this.#ping(({ usedAt }) => usedAt < statement.sentAt);
    statement.fail(new NoResponse('the database did not respond on this connection'));
    if (this.#answeredAt < statement.sentAt) void this.#probeUntilAnswered();
    this.#dispatch();
  }

  /** Asks idle connections whether they still work. Those without an answer are discarded. */
  #ping(isSuspect: (connection: Connection) => boolean): void {
    for (const connection of this.#idle.splice(0)) {
      if (isSuspect(connection)) void this.#pingOne(connection);
      else this.#idle.push(connection);
    }
  }

  async #pingOne(connection: Connection): Promise<void> {
    this.#startChecks();
    const sentAt = this.#poolTime();
    connection.statement = {
      sentAt,
      giveUpAt: Infinity,
      respondWithinMs: PING_MS,
      answerBy: Infinity,
      share: null,
      isPing: true,
      fail: () => {},
    };
    try {
      await connection.client`select 1`;
      this.#noteAnswer(sentAt);
    } catch (error) {
      if (isAnswer(error)) this.#noteAnswer(sentAt);
      else this.#discard(connection);
    }
    this.#release(connection);
  }

  #discard(connection: Connection): void {
    this.#connections.delete(connection);
    this.#leaveShare(connection);
    connection.discard();
  }

  #leaveShare(connection: Connection): void {
    for (const share of withOuter(connection.share)) share.inUse -= 1;
    connection.share = null;
  }

  #discardIdle(isLost: (connection: Connection) => boolean): void {
    for (const connection of this.#idle.splice(0)) {
      if (isLost(connection)) this.#discard(connection);
      else this.#idle.push(connection);
    }
  }

  /** Pool time, ms: a clock that stands still while the event loop is blocked, so that a pause of the process is no silence of the database. */
  #poolTime(): number {
    const now = performance.now();
    return now - this.#blockedMs - (this.#checks === undefined ? 0 : this.#lateMs(now));
  }

  /** How late the next check is, ms. */
  #lateMs(now: number): number {
    return Math.max(0, now - this.#checkedAt - 2 * CHECK_MS);
  }

  #startChecks(): void {
    if (this.#checks !== undefined) return;
    this.#checkedAt = performance.now();
    this.#checks = setInterval(() => {
      const now = performance.now();
      this.#blockedMs += this.#lateMs(now);
      this.#checkedAt = now;
      // After the responses that have arrived meanwhile.
      setImmediate(() => this.#check());
    }, CHECK_MS);
  }

  #check(): void {
    const [now, poolTime] = [performance.now(), this.#poolTime()];
    const silentMs = this.#silentSince === null ? 0 : poolTime - this.#silentSince;
    let isBusy = false;
    for (const connection of this.#connections) {
      const { statement } = connection;
      if (statement === undefined) continue;
      isBusy = true;
      const age = poolTime - statement.sentAt;
      if (now > statement.giveUpAt) statement.fail(new NoResponse('the database did not respond in time'));
      if (poolTime > statement.answerBy || this.#isLost(statement, age, silentMs))
        this.#discardUnanswered(connection, statement);
      if (Math.min(age, poolTime - this.#answeredAt) > SUSPECT_AFTER_MS) void this.#probeUntilAnswered();
    }
    for (const waiter of this.#waiting.filter(({ giveUpAt }) => now > giveUpAt)) {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.fail(new NoResponse('no connection became free in time'));
    }
    if (!isBusy && this.#waiting.length === 0 && !this.#isProbing) {
      clearInterval(this.#checks);
      this.#checks = undefined;
    }
  }

  /**
   * Whether a statement has waited too long for its answer. While nothing is heard on any connection, nobody knows which of the idle ones
   * are lost: they are kept, since new logins for all of them would cost a starved server more than anything else.
   */
  #isLost({ isPing, sentAt, answerBy, respondWithinMs }: Statement, age: number, silentMs: number): boolean {
    if (isPing !== true) return age > respondWithinMs || (silentMs > SILENCE_LIMIT_MS && age > LOST_AFTER_MS);
    return this.#answeredAt > sentAt && answerBy === Infinity && age > respondWithinMs;
  }

  /** Notes an answer to what was sent at that time. It ends the silence of the database. */
  #noteAnswer(sentAt = this.#poolTime()): void {
    this.#answeredAt = this.#poolTime();
    this.#wake();
    if (this.#silentSince !== null) this.#endSilence(this.#answeredAt - sentAt);
  }

  /** Probes the database until it is heard on any connection. It is silent when it has not answered the first probes. */
  async #probeUntilAnswered(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const since = this.#poolTime();
    this.#answeredAt = Math.min(this.#answeredAt, since - 1);
    this.#ping(() => true);
    const probes = new Set<Connection>();
    let patient: Connection | undefined;
    let pauseMs = PROBE_PAUSE_MS;
    while (!this.#isClosed && this.#answeredAt < since) {
      const isPatient = patient === undefined || !probes.has(patient);
      const probe = this.#probe(probes, isPatient ? PATIENT_PROBE_MS : PROBE_MS);
      if (isPatient) patient = probe;
      await this.#pause(pauseMs);
      pauseMs = Math.min(LONGEST_PROBE_PAUSE_MS, pauseMs * 1.2);
      if (this.#answeredAt < since && this.#poolTime() - since > SILENT_AFTER_MS) this.#silentSince ??= since;
    }
    for (const probe of probes) probe.discard();
    this.#isProbing = false;
  }

  /** Waits until an answer comes, for at most `ms`. */
  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Asks on a new connection. Any response counts, be it an error. */
  #probe(probes: Set<Connection>, withinMs: number): Connection {
    const probe = new Connection(this.#options.createClient);
    const sentAt = this.#poolTime();
    probes.add(probe);
    const end = () => {
      clearTimeout(timer);
      probes.delete(probe);
      probe.discard();
    };
    const timer = setTimeout(end, withinMs);
    const noteAnswer = () => {
      if (!probe.isDiscarded) this.#noteAnswer(sentAt);
      end();
    };
    probe.client`select 1`.then(noteAnswer, noteAnswer);
    return probe;
  }

  /**
   * Lets statements go on. What was sent before the silence has a moment to be answered, and its connection to be kept: longer if
   * the first answer took `latencyMs`, because the database is slow then.
   */
  #endSilence(latencyMs: number): void {
    this.#silentSince = null;
    const poolTime = this.#poolTime();
    for (const { statement } of this.#connections) {
      if (statement !== undefined && poolTime - statement.sentAt > LOST_AFTER_MS)
        statement.answerBy = poolTime + Math.max(GRACE_MS, 2 * latencyMs);
    }
    this.#ping(() => true);
    this.#dispatch();
  }
}
