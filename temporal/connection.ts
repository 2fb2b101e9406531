import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import type { NativeConnection, NativeConnectionOptions, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Activities } from '../activities/index.ts';
import { connectToTemporal, TemporalRefusal } from './connect.ts';
import { reasonOf } from './grpc-errors.ts';
import { findNamespace } from './namespace.ts';
import type { ScheduledWorkflow } from './schedules.ts';
import { findMissingSearchAttributes } from './search-attributes.ts';
import { installSdkRuntime } from './sdk-runtime.ts';
import { ServerSetUp } from './set-up.ts';
import type { Tracing } from './tracing.ts';
import { createWorkers } from './worker.ts';
import type { Workers } from './worker.ts';
import type { KnownSearchAttributes } from './start.ts';

const CONNECT_PAUSE_MS = 1_000;
const HEALTH_PAUSE_MS = 2_000;
const HEALTH_DEADLINE_MS = 2_000;
const SETUP_PAUSE_MS = 60_000;
/** The same while something is missing: a new server has new namespaces and search attributes only after a while. */
const SETUP_RETRY_MS = 10_000;

export interface TemporalConnectionSettings {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  /** The task queue of awaited work. Background work has one of its own. */
  readonly taskQueue: string;
  /** Empty in tests that share one server. */
  readonly schedules: readonly ScheduledWorkflow[];
  /** How often missing search attributes and Schedules are restored, as after the server was wiped; a minute by default. */
  readonly setUpPauseMs?: number;
  readonly logger: Logger;
  /** Null or missing when no traces are sent. */
  readonly tracing?: Tracing | null | undefined;
}

/** What a process does with its connection. */
export interface TemporalUse {
  /** Null in a process that only serves the API. */
  readonly worker: {
    readonly bundle: () => Promise<WorkflowBundle>;
    readonly activities: () => Activities;
    /** Awaited before each activity of background work. */
    readonly beforeBackground: () => Promise<void>;
    /** Returns why the worker must not take work yet, for the operator, or null. Asked every two seconds until it has started. */
    readonly waitsFor: () => Promise<string | null>;
  } | null;
  /** Called when the server has another namespace of the same name than before: it was wiped or replaced. */
  readonly onNewServer?: () => void;
}

/** Rejects when a call takes longer: the SDK repeats one that fails for a while, whatever its deadline is. */
async function within<T>(ms: number, call: Promise<T>): Promise<T> {
  const ended = new AbortController();
  const late = async () => {
    await sleep(ms, undefined, { signal: ended.signal });
    throw new Error(`the server did not respond within ${ms} ms`);
  };
  try {
    return await Promise.race([call, late()]);
  } finally {
    ended.abort();
    call.catch(() => {});
  }
}

/**
 * A process's connection to Temporal. Once started, it connects in the background, runs the worker unless that has to wait, checks the
 * server's health, and sets up what is missing on the server. The service accepts and stores deliveries meanwhile. A set-up that fails is
 * reported and does not affect the health: deliveries need only the server and the worker.
 */
export class TemporalConnection {
  readonly #settings: TemporalConnectionSettings;
  readonly #stopping = new AbortController();
  readonly #setUp: ServerSetUp;
  #use: TemporalUse = { worker: null };
  #watching: Promise<void> = Promise.resolve();
  #connection: NativeConnection | undefined;
  #client: Client | null = null;
  #workers: Workers | undefined;
  /** Why the worker does not take work yet; null when it may. */
  #waitsFor: string | null = null;
  #workersEnd: Promise<void> = Promise.resolve();
  #isHealthy = false;
  /** The id of the namespace; null until the server has said it. */
  #namespaceId: string | null = null;
  #wasReached = false;
  #wasTried = false;
  #refusal: string | null = null;
  #problem: string | null = 'Temporal: not connected yet';

  constructor(settings: TemporalConnectionSettings) {
    this.#settings = settings;
    this.#setUp = new ServerSetUp(settings.logger);
    installSdkRuntime(settings.logger);
  }

  /** Begins to connect, and to run the worker. Called once. */
  start(use: TemporalUse): void {
    this.#use = use;
    this.#watching = this.#watch();
  }

  /** Null while the server does not respond: callers then leave their work to the relay. */
  get client(): Client | null {
    return this.#isHealthy ? this.#client : null;
  }

  /** What is missing, for the operator; null when nothing is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** What the last set-up could not create on the server, and why; null when nothing is missing. */
  get setUpProblem(): string | null {
    return this.#setUp.problem;
  }

  /** Whether the server was at least once reached and served by the worker, unless that has to wait, and a set-up was tried. */
  get wasReady(): boolean {
    return this.#wasReached && this.#setUp.hasRun;
  }

  /** Whether at least one attempt to reach the server has ended. */
  get wasTried(): boolean {
    return this.#wasTried;
  }

  /** Why the server refuses what is configured, before it has accepted it once; null in any other case. */
  get refusal(): string | null {
    return this.#wasReached ? null : this.#refusal;
  }

  /** The search attributes that a start may have, until the server refuses one. */
  get knownSearchAttributes(): KnownSearchAttributes {
    const { searchAttributes } = this.#setUp;
    return { searchAttributes, forgetSearchAttributes: () => this.#setUp.forgetSearchAttributes() };
  }

  /** Returns whether the namespace has the search attribute that workflows set. False when the server can't say. */
  async canMark(): Promise<boolean> {
    const connection = this.#connection;
    if (connection === undefined) return false;
    try {
      const missing = await connection.withDeadline(Date.now() + HEALTH_DEADLINE_MS, () =>
        findMissingSearchAttributes(connection, this.#settings.namespace, ['DeliveryState']),
      );
      return missing.length === 0;
    } catch {
      return false;
    }
  }

  /** Restores now what the server lacks, instead of within a minute. Does nothing while the server is unavailable. */
  setUpNow(): void {
    const [connection, client] = [this.#connection, this.#client];
    if (connection !== undefined && client !== null) {
      this.#setUp.start({ ...this.#settings, connection, client });
    }
  }

  /** Ends the worker after its tasks, then the connection. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
    await this.#setUp.stop();
    this.#workers?.shutdown();
    await this.#workersEnd;
    // A worker that was given up on still holds the connection, and closing it throws.
    await this.#connection?.close().catch((error: unknown) => {
      this.#settings.logger.warn({ err: error, msg: 'the connection to Temporal was left open' });
    });
  }

  async #watch(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const needsWorker = await this.#needsWorker();
      if (this.#connection === undefined || this.#client === null || needsWorker) {
        if (!(await this.#tryToConnect(needsWorker))) await this.#pause(CONNECT_PAUSE_MS);
        continue;
      }
      await this.#pause(HEALTH_PAUSE_MS);
      if (!this.#stopping.signal.aborted) await this.#checkHealth(this.#connection, this.#client);
    }
  }

  /** Returns whether a worker is to be started. Logs why it has to wait when that is new. */
  async #needsWorker(): Promise<boolean> {
    const { worker } = this.#use;
    if (worker === null || this.#workers !== undefined) return false;
    const reason = await worker.waitsFor().catch(reasonOf);
    if (reason !== null && reason !== this.#waitsFor) {
      this.#settings.logger.error({ reason, msg: 'the worker of this process takes no work yet' });
    }
    this.#waitsFor = reason;
    return reason === null;
  }

  async #tryToConnect(needsWorker: boolean): Promise<boolean> {
    const { connection, namespace, logger } = this.#settings;
    const { signal } = this.#stopping;
    try {
      this.#connection ??= await connectToTemporal(connection, namespace, signal);
    } catch (error) {
      if (signal.aborted) return false;
      const address = connection.address ?? 'the default address';
      const problem =
        error instanceof TemporalRefusal
          ? error.message
          : `Temporal can't be reached at ${address}: check TEMPORAL_ADDRESS`;
      this.#refusal = error instanceof TemporalRefusal ? error.message : null;
      this.#reportProblem(problem, error);
      return false;
    }
    try {
      const interceptors = { workflow: [...(this.#settings.tracing?.clientInterceptors ?? [])] };
      this.#client = new Client({ connection: this.#connection, namespace, interceptors });
      if (needsWorker) await this.#runWorker(this.#connection);
    } catch (error) {
      this.#reportProblem(`Temporal: the worker did not start (${reasonOf(error)})`, error);
      return false;
    }
    this.#isHealthy = true;
    this.#wasReached = true;
    this.#wasTried = true;
    this.#problem = null;
    this.#setUp.start({ ...this.#settings, connection: this.#connection, client: this.#client });
    const { taskQueue } = this.#settings;
    const worker = this.#workers !== undefined;
    logger.info({ namespace, taskQueue, worker, msg: 'connected to Temporal' });
    return true;
  }

  /** Reports why an attempt to connect failed, and logs it when it is new. */
  #reportProblem(problem: string, error: unknown): void {
    if (problem !== this.#problem) {
      this.#settings.logger.warn({ reason: reasonOf(error), msg: `${problem}; retrying every second` });
    }
    this.#problem = problem;
    this.#wasTried = true;
  }

  async #runWorker(connection: NativeConnection): Promise<void> {
    const { namespace, taskQueue, tracing, logger } = this.#settings;
    const { worker } = this.#use;
    if (worker === null) return;
    this.#workers = await createWorkers({
      connection,
      namespace,
      taskQueue,
      workflowBundle: await worker.bundle(),
      activities: worker.activities(),
      beforeBackground: worker.beforeBackground,
      tracing,
    });
    this.#workersEnd = this.#workers.run().catch((error: unknown) => {
      this.#workers = undefined;
      // A failed worker may still hold its connection, so the next one gets a connection of its own.
      this.#connection = undefined;
      this.#isHealthy = false;
      this.#problem = 'Temporal: the worker stopped and is being restarted';
      logger.error({ err: error, msg: 'the worker stopped' });
      connection.close().catch(() => {});
    });
  }

  async #checkHealth(connection: NativeConnection, client: Client): Promise<void> {
    const { logger, namespace, setUpPauseMs = SETUP_PAUSE_MS } = this.#settings;
    try {
      const found = await within(
        HEALTH_DEADLINE_MS,
        connection.withDeadline(Date.now() + HEALTH_DEADLINE_MS, () => findNamespace(connection, namespace)),
      );
      if (found.kind === 'missing') {
        // Nothing can start without it. The set-up registers it.
        if (this.#isHealthy) logger.warn({ namespace, msg: 'the Temporal server has lost its namespace' });
        this.#isHealthy = false;
        this.#problem = `Temporal: the namespace ${namespace} is missing and is being registered`;
        this.#setUp.start({ ...this.#settings, connection, client });
        return;
      }
      const hasReturned = !this.#isHealthy;
      const isNew = found.kind === 'found' && this.#namespaceId !== null && found.id !== this.#namespaceId;
      if (found.kind === 'found') this.#namespaceId = found.id;
      this.#isHealthy = true;
      this.#problem = null;
      const pauseMs = this.#setUp.problem === null ? setUpPauseMs : Math.min(setUpPauseMs, SETUP_RETRY_MS);
      if (hasReturned || isNew || performance.now() - this.#setUp.startedAt > pauseMs) {
        this.#setUp.start({ ...this.#settings, connection, client });
      }
      if (isNew) {
        logger.warn({
          namespace,
          msg: 'the Temporal server is a new one: open work is started again from the database',
        });
        this.#use.onNewServer?.();
      }
    } catch (error) {
      if (this.#isHealthy) {
        logger.warn({
          err: error,
          msg: 'Temporal does not respond; deliveries are stored until it is back',
        });
      }
      this.#isHealthy = false;
      this.#problem = 'Temporal: the server does not respond';
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}
