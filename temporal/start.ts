import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type {
  Client,
  WithWorkflowArgs,
  WorkflowHandle,
  WorkflowSignalWithStartOptions,
  WorkflowStartOptions,
} from '@temporalio/client';
import type { DeliveryKeys } from '../src/domain/delivery.ts';
import { workflowIdOf } from '../src/domain/workflow-id.ts';
import type * as workflows from '../workflows/index.ts';
import { GRPC, grpcCode } from './grpc-errors.ts';
import { backgroundQueue, messageQueue } from './names.ts';
import { SEARCH_ATTRIBUTE_KEYS } from './search-attributes.ts';
import type { SearchAttribute } from './search-attributes.ts';

export type Workflows = typeof workflows;
export type Input<Name extends keyof Workflows> = Parameters<Workflows[Name]>[0];

interface WorkflowRow<Name extends keyof Workflows> {
  /** The field of its input that makes its id. Null: the task queue, because one works for the whole installation. */
  readonly key: (keyof Input<Name> & string) | null;
  /** Stands in its id instead of its name. */
  readonly idName?: string;
  /** Whether the first task goes straight to the worker of this process, without the task queue. */
  readonly eager: boolean;
  /** The task queue: that of awaited work if someone waits for the result. */
  readonly queue: 'awaited' | 'background' | 'webhooks';
  /** Whether the other workflows of its queue go first, however many of it wait. */
  readonly goesLast?: boolean;
}

/** The first and the last of Temporal's five levels of tasks in a queue. Without one, a task has the third. */
const FIRST = 1;
const LAST = 5;

/** The names of the task queues of an installation, from that of awaited work. */
const QUEUES = {
  awaited: (taskQueue: string) => taskQueue,
  background: backgroundQueue,
  webhooks: messageQueue,
} as const;

/**
 * Every workflow that the service starts by name, with its id, `NAME:KEY`. Schedules start the others (`schedules.ts`); a sweep
 * between those of its Schedule has a name of its own in its id.
 */
export const WORKFLOWS = {
  delivery: { key: 'deliveryId', eager: true, queue: 'awaited' },
  // Thousands may be due at one instant. The sweep matures what is late.
  hold: { key: 'commissionId', eager: false, queue: 'background', goesLast: true },
  heal: { key: 'bindingId', eager: true, queue: 'background' },
  payout: { key: 'affiliateId', eager: false, queue: 'awaited' },
  payoutRun: { idName: 'payout-run', key: 'runId', eager: true, queue: 'awaited' },
  reprocess: { key: 'reprocessRunId', eager: true, queue: 'background' },
  erase: { key: 'erasureId', eager: true, queue: 'background' },
  convert: { key: null, eager: true, queue: 'background' },
  sweep: { idName: 'sweep-now', key: null, eager: false, queue: 'background' },
  email: { key: 'emailId', eager: true, queue: 'webhooks' },
  webhook: { key: 'messageId', eager: true, queue: 'webhooks' },
} as const satisfies { readonly [Name in keyof Workflows]?: WorkflowRow<Name> };

export type StartedWorkflow = keyof typeof WORKFLOWS;

/** A workflow that was started, or that runs already. */
interface Started<Name extends StartedWorkflow> {
  readonly handle: WorkflowHandle<Workflows[Name]>;
  readonly isNew: boolean;
  /** Whether the worker of this process has the first task. */
  readonly isLocal: boolean;
}

/** Limits each call to Temporal: a request waits behind it, or the relay repeats it. */
export const CALL_DEADLINE_MS = 2_000;
/** A worker that dies in the middle of a task is given up on after this. */
const WORKFLOW_TASK_TIMEOUT = '3s' as const;

/** What the search attributes of a workflow say when it starts. */
type Labels = { readonly [Name in Exclude<SearchAttribute, 'DeliveryState'>]?: string };

interface StartOptions {
  readonly startDelay?: number;
  readonly staticSummary?: string;
  readonly labels?: Labels;
  /** Whether it has priority over the other workflows of its queue. */
  readonly isUrgent?: boolean;
}

type SignalOptions<Name extends StartedWorkflow> = WithWorkflowArgs<
  Workflows[Name],
  WorkflowSignalWithStartOptions<unknown[]>
>;

/** The search attributes that the namespace has. A server refuses a start with any other one. */
export interface KnownSearchAttributes {
  readonly searchAttributes: ReadonlySet<SearchAttribute>;
  /** Called when the server has refused a start because of them. */
  readonly forgetSearchAttributes: () => void;
}

const NO_SEARCH_ATTRIBUTES: KnownSearchAttributes = {
  searchAttributes: new Set(),
  forgetSearchAttributes: () => {},
};

export interface StartDeps {
  /** Null while Temporal can't be reached. */
  readonly client: () => Client | null;
  /** The task queue of awaited work. */
  readonly taskQueue: string;
  /** Whether a worker of this task queue runs in this process. Only then are starts eager and results local. */
  readonly hasWorker: boolean;
  /** None by default: workflows then start without search attributes. */
  readonly known?: () => KnownSearchAttributes;
}

/** Starts and signals workflows on Temporal. */
export class Starter {
  readonly #deps: StartDeps;

  constructor(deps: StartDeps) {
    this.#deps = deps;
  }

  /** Whether Temporal responds right now. */
  get isReachable(): boolean {
    return this.#deps.client() !== null;
  }

  /**
   * Calls Temporal. Returns undefined when it can't be reached. Throws when it does not respond by `deadline` (epoch ms), by default
   * within two seconds.
   */
  async call<T>(
    work: (temporal: Client) => Promise<T>,
    deadline = Date.now() + CALL_DEADLINE_MS,
  ): Promise<T | undefined> {
    const temporal = this.#deps.client();
    return await temporal?.withDeadline(deadline, async () => await work(temporal));
  }

  /** Starts a workflow, or finds the one that runs already. Returns undefined when Temporal can't be reached. */
  async start<Name extends StartedWorkflow>(
    name: Name,
    input: Input<Name>,
    { labels = {}, isUrgent = false, ...options }: StartOptions = {},
  ): Promise<Started<Name> | undefined> {
    const started = this.#optionsOf(name, input);
    return await this.call(async (temporal) => {
      try {
        const handle = await this.#withLabels(name, { labels, isUrgent }, async (attributes) =>
          temporal.workflow.start<Workflows[Name]>(name, {
            ...started,
            ...options,
            ...attributes,
            requestEagerStart: WORKFLOWS[name].eager && this.#deps.hasWorker,
          } as WorkflowStartOptions<Workflows[Name]>),
        );
        return { handle, isNew: true, isLocal: handle.eagerlyStarted };
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        const handle = temporal.workflow.getHandle<Workflows[Name]>(started.workflowId);
        return { handle, isNew: false, isLocal: false };
      }
    });
  }

  /** Starts the workflow of a delivery. Its summary has the ids that founders and operators know. */
  async startDelivery({
    deliveryId,
    provider,
    appId,
    eventId,
  }: DeliveryKeys): Promise<Started<'delivery'> | undefined> {
    return await this.start(
      'delivery',
      { deliveryId },
      { staticSummary: `${provider} ${appId} ${eventId}`, labels: { AppId: appId, Provider: provider } },
    );
  }

  /** Signals a workflow, and starts it when none runs. Returns undefined and throws as `call` does. */
  async signalWithStart<Name extends StartedWorkflow>(
    name: Name,
    input: Input<Name>,
    { signal, signalArgs = [], labels }: { signal: string; signalArgs?: unknown[]; labels: Labels },
    deadline?: number,
  ): Promise<WorkflowHandle<Workflows[Name]> | undefined> {
    return await this.call(
      async (temporal) =>
        await this.#withLabels(name, { labels, isUrgent: false }, async (attributes) =>
          temporal.workflow.signalWithStart<Workflows[Name], unknown[]>(name, {
            ...this.#optionsOf(name, input),
            ...attributes,
            signal,
            signalArgs,
          } as SignalOptions<Name>),
        ),
      deadline,
    );
  }

  /**
   * Starts a workflow with those of its search attributes that the namespace has. When the server does not know them any
   * more, as after a wipe, starts it without, and so all others until the next set-up. The app is its fairness key, too: a server
   * with `matching.enableFairness` takes the tasks of a full queue from all apps in turn. Tasks of a lower level wait for all others.
   */
  async #withLabels<T>(
    workflow: StartedWorkflow,
    { labels, isUrgent }: { readonly labels: Labels; readonly isUrgent: boolean },
    start: (options: Pick<WorkflowStartOptions, 'typedSearchAttributes' | 'priority'>) => Promise<T>,
  ): Promise<T> {
    const priority = {
      ...(isUrgent && { priorityKey: FIRST }),
      ...((WORKFLOWS[workflow] as WorkflowRow<StartedWorkflow>).goesLast === true && { priorityKey: LAST }),
      ...(labels.AppId !== undefined && { fairnessKey: labels.AppId }),
    };
    const { searchAttributes, forgetSearchAttributes } = this.#deps.known?.() ?? NO_SEARCH_ATTRIBUTES;
    const typedSearchAttributes = SEARCH_ATTRIBUTE_KEYS.flatMap(({ name, key }) => {
      const value = labels[name];
      return value === undefined || !searchAttributes.has(name) ? [] : [{ key, value }];
    });
    if (typedSearchAttributes.length === 0) return await start({ priority });
    try {
      return await start({ priority, typedSearchAttributes });
    } catch (error) {
      if (grpcCode((error as Error).cause) !== GRPC.invalidArgument) throw error;
      const handle = await start({ priority });
      forgetSearchAttributes();
      return handle;
    }
  }

  #optionsOf<Name extends StartedWorkflow>(name: Name, input: Input<Name>) {
    const { taskQueue } = this.#deps;
    const { key, queue, idName = name } = WORKFLOWS[name] as WorkflowRow<StartedWorkflow>;
    const fields = (input ?? {}) as Readonly<Record<string, unknown>>;
    return {
      taskQueue: QUEUES[queue](taskQueue),
      workflowId: workflowIdOf(idName, key === null ? taskQueue : String(fields[key])),
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
      args: (input === undefined ? [] : [input]) as Parameters<Workflows[Name]>,
    };
  }
}
