import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { NativeConnectionOptions, Worker, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Activities } from '../activities/index.ts';
import { ensureNamespace } from './namespace.ts';
import type { ScheduleId } from './schedules.ts';
import { installSdkRuntime } from './sdk-runtime.ts';
import { ServerSetUp } from './set-up.ts';
import { createWorker } from './worker.ts';

const CONNECT_PAUSE_MS = 1_000;
const HEALTH_PAUSE_MS = 2_000;
const HEALTH_DEADLINE_MS = 2_000;
const SETUP_PAUSE_MS = 60_000;

export interface TemporalConnectionSettings {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Null in a process that only serves the API. */
  readonly worker: {
    readonly bundle: () => Promise<WorkflowBundle>;
    readonly activities: () => Activities;
  } | null;
  /** Empty in tests that share one server. */
  readonly schedules: readonly ScheduleId[];
  /** How often missing search attributes and Schedules are restored, as after the server was wiped; a minute by default. */
  readonly setUpPauseMs?: number;
  readonly logger: Logger;
}

/**
 * A process's connection to Temporal. In the background it connects, runs the worker, checks the server's health, and
 * sets up what is missing on the server. The service accepts and stores deliveries meanwhile. A set-up that fails is
 * reported and does not affect the health: deliveries need only the server and the worker.
 */
export class TemporalConnection {
  readonly #settings: TemporalConnectionSettings;
  readonly #stopping = new AbortController();
  readonly #setUp: ServerSetUp;
  readonly #watching: Promise<void>;
  #connection: NativeConnection | undefined;
  #client: Client | null = null;
  #worker: Worker | undefined;
  #workerEnd: Promise<void> = Promise.resolve();
  #isHealthy = false;
  #wasReached = false;
  #problem: string | null = 'Temporal: not connected yet';

  constructor(settings: TemporalConnectionSettings) {
    this.#settings = settings;
    this.#setUp = new ServerSetUp(settings.logger);
    installSdkRuntime(settings.logger);
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

  /** Whether the server was at least once reached and served by the worker, and a set-up was tried. */
  get wasReady(): boolean {
    return this.#wasReached && this.#setUp.hasRun;
  }

  /** Ends the worker after its tasks, then the connection. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
    await this.#setUp.stop();
    this.#worker?.shutdown();
    await this.#workerEnd;
    await this.#connection?.close();
  }

  async #watch(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const needsWorker = this.#settings.worker !== null && this.#worker === undefined;
      if (this.#connection === undefined || this.#client === null || needsWorker) {
        if (!(await this.#tryToConnect())) await this.#pause(CONNECT_PAUSE_MS);
        continue;
      }
      await this.#pause(HEALTH_PAUSE_MS);
      if (!this.#stopping.signal.aborted) await this.#checkHealth(this.#connection, this.#client);
    }
  }

  async #tryToConnect(): Promise<boolean> {
    const { connection, logger } = this.#settings;
    try {
      await this.#connect();
      return true;
    } catch (error) {
      const problem = `Temporal can't be reached at ${connection.address ?? 'the default address'}: check TEMPORAL_ADDRESS`;
      const reason = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem) logger.warn({ reason, msg: `${problem}; retrying every second` });
      this.#problem = problem;
      return false;
    }
  }

  async #connect(): Promise<void> {
    const { namespace, taskQueue, worker, logger } = this.#settings;
    this.#connection ??= await NativeConnection.connect(this.#settings.connection);
    await ensureNamespace(this.#connection, namespace);
    this.#client = new Client({ connection: this.#connection, namespace });
    if (this.#worker === undefined) await this.#runWorker(this.#connection);
    this.#isHealthy = true;
    this.#wasReached = true;
    this.#problem = null;
    this.#setUp.start({ ...this.#settings, connection: this.#connection, client: this.#client });
    logger.info({ namespace, taskQueue, worker: worker !== null, msg: 'connected to Temporal' });
  }

  async #runWorker(connection: NativeConnection): Promise<void> {
    const { namespace, taskQueue, worker, logger } = this.#settings;
    if (worker === null) return;
    this.#worker = await createWorker({
      connection,
      namespace,
      taskQueue,
      workflowBundle: await worker.bundle(),
      activities: worker.activities(),
    });
    this.#workerEnd = this.#worker.run().catch((error: unknown) => {
      this.#worker = undefined;
      this.#problem = 'Temporal: the worker stopped and is being restarted';
      logger.error({ err: error, msg: 'the worker stopped' });
    });
  }

  async #checkHealth(connection: NativeConnection, client: Client): Promise<void> {
    const { logger, setUpPauseMs = SETUP_PAUSE_MS } = this.#settings;
    try {
      await connection.withDeadline(Date.now() + HEALTH_DEADLINE_MS, () =>
        connection.workflowService.getSystemInfo({}),
      );
      const hasReturned = !this.#isHealthy;
      this.#isHealthy = true;
      this.#problem = null;
      if (hasReturned || Date.now() - this.#setUp.startedAt > setUpPauseMs) {
        this.#setUp.start({ ...this.#settings, connection, client });
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
