import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { reasonOf } from './grpc-errors.ts';
import { ensureNamespace } from './namespace.ts';
import { ensureSchedules } from './schedules.ts';
import type { ScheduledWorkflow } from './schedules.ts';
import { ensureSearchAttributes } from './search-attributes.ts';
import type { SearchAttribute, SearchAttributeSetUp } from './search-attributes.ts';

const DEADLINE_MS = 10_000;

export interface SetUpTarget {
  readonly connection: NativeConnection;
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly schedules: readonly ScheduledWorkflow[];
}

/** What a set-up found and created. */
interface SetUpResult {
  /** One sentence per part that is missing, with the server's reason. */
  readonly problems: readonly string[];
  /** The search attributes that the namespace has for certain. */
  readonly searchAttributes: readonly SearchAttribute[];
}

/**
 * Creates what the service needs on a server besides its worker: the namespace after a wipe, search attributes and
 * Schedules. The parts don't depend on each other, and no delivery depends on them.
 */
async function setUpServer(target: SetUpTarget): Promise<SetUpResult> {
  const { connection, client, namespace, taskQueue, schedules } = target;
  const within = async (work: () => Promise<string | null | void>): Promise<string | null> =>
    (await connection.withDeadline(Date.now() + DEADLINE_MS, work)) ?? null;
  const namespaceProblem = await within(() => ensureNamespace(connection, namespace)).catch(
    (error: unknown) => `The namespace ${namespace} is missing and can't be registered (${reasonOf(error)}).`,
  );
  const attributes = await ensureSearchAttributes(connection, namespace).catch(
    (error: unknown): SearchAttributeSetUp => ({
      present: [],
      problem: `The search attributes of the namespace ${namespace} can't be checked (${reasonOf(error)}).`,
    }),
  );
  const problems = [
    namespaceProblem,
    attributes.problem,
    await within(() => ensureSchedules(client, taskQueue, schedules)).catch(
      (error: unknown) =>
        `The Schedules of the namespace ${namespace} can't be created (${reasonOf(error)}).`,
    ),
  ];
  return {
    problems: problems.filter((problem) => problem !== null),
    searchAttributes: attributes.present,
  };
}

/** The set-up of a server by one process: run in the background, again and again, and logged when its result changes. */
export class ServerSetUp {
  readonly #logger: Logger;
  #problem: string | null = null;
  #startedAt = -Infinity;
  #running: Promise<void> | null = null;
  #hasRun = false;
  #searchAttributes: ReadonlySet<SearchAttribute> = new Set();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** What the last set-up could not create on the server, and why; null when nothing is missing. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The search attributes that the last set-up found or created. A server refuses a start with any other one. */
  get searchAttributes(): ReadonlySet<SearchAttribute> {
    return this.#searchAttributes;
  }

  /** Forgets the search attributes until the next set-up, as after a start was refused because of one. */
  forgetSearchAttributes(): void {
    this.#searchAttributes = new Set();
  }

  /** Whether a set-up was tried. */
  get hasRun(): boolean {
    return this.#hasRun;
  }

  /** When the last set-up started, `performance.now()` ms. */
  get startedAt(): number {
    return this.#startedAt;
  }

  /** Starts a set-up unless one is running. A slow one delays no caller. */
  start(target: SetUpTarget): void {
    this.#startedAt = performance.now();
    this.#running ??= this.#run(target).finally(() => {
      this.#running = null;
    });
  }

  /** Waits until no set-up is running. */
  async stop(): Promise<void> {
    await this.#running;
  }

  async #run(target: SetUpTarget): Promise<void> {
    const { problems, searchAttributes } = await setUpServer(target);
    this.#searchAttributes = new Set(searchAttributes);
    const problem = problems.length === 0 ? null : problems.join(' ');
    if (problem !== this.#problem) {
      if (problem === null) this.#logger.info({ msg: 'Temporal set-up: nothing is missing any more' });
      else this.#logger.warn({ msg: `Temporal set-up: ${problem}` });
    }
    this.#problem = problem;
    this.#hasRun = true;
  }
}
