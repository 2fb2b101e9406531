import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import type { Logger } from 'pino';
import type { NewCommission } from '../src/db/evaluations.ts';
import type { ClaimedMessage } from '../src/db/webhook-messages.ts';
import type { DeliveryKeys, DeliveryOutcome } from '../src/domain/delivery.ts';
import type {
  AppId,
  BindingId,
  DeliveryId,
  ErasureId,
  PayoutRequestId,
  ReprocessRunId,
} from '../src/domain/ids.ts';
import type { WebhookMessageKeys } from '../src/domain/outgoing-webhooks.ts';
import { MINUTE_MS } from '../src/domain/time.ts';
import { PAYOUT_REQUESTED, SEND_NOW } from '../src/domain/workflow-contracts.ts';
import { workflowIds } from '../src/domain/workflow-ids.ts';
import type { KeepPlace, PayoutRequestKeys, PendingStep, WorkflowStarter } from '../src/commands/deps.ts';
import type * as workflows from '../workflows/index.ts';
import { AwaitedCalls } from './awaited-calls.ts';
import { GRPC, grpcCode } from './grpc-errors.ts';
import { HoldQueue } from './hold-queue.ts';
import { backgroundQueue, webhookQueue } from './names.ts';
import { PendingResults } from './pending-results.ts';
import { SEARCH_ATTRIBUTE_KEYS } from './search-attributes.ts';
import type { SearchAttribute } from './search-attributes.ts';
import type { SharedResult } from './shared-results.ts';

type Workflows = typeof workflows;
type Input<Name extends keyof Workflows> = Parameters<Workflows[Name]>[0];

interface WorkflowRow<Name extends keyof Workflows> {
  readonly id: (input: Input<Name>, taskQueue: string) => string;
  /** Whether the first task goes straight to the worker of this process, without the task queue. */
  readonly eager: boolean;
  /** The task queue: that of awaited work if someone waits for the result. */
  readonly queue: 'awaited' | 'background' | 'webhooks';
}

/** The names of the task queues of an installation, from that of awaited work. */
const QUEUES = {
  awaited: (taskQueue: string) => taskQueue,
  background: backgroundQueue,
  webhooks: webhookQueue,
} as const;

/** Every workflow that the service starts by name. Schedules start the others (`schedules.ts`). */
const WORKFLOWS = {
  delivery: { id: ({ deliveryId }) => workflowIds.delivery(deliveryId), eager: true, queue: 'awaited' },
  hold: { id: ({ commissionId }) => workflowIds.hold(commissionId), eager: false, queue: 'background' },
  heal: { id: ({ bindingId }) => workflowIds.heal(bindingId), eager: true, queue: 'background' },
  payout: { id: ({ affiliateId }) => workflowIds.payout(affiliateId), eager: false, queue: 'awaited' },
  reprocess: {
    id: ({ reprocessRunId }) => workflowIds.reprocess(reprocessRunId),
    eager: true,
    queue: 'background',
  },
  erase: { id: ({ erasureId }) => workflowIds.erase(erasureId), eager: true, queue: 'background' },
  convert: { id: (_, taskQueue) => workflowIds.convert(taskQueue), eager: true, queue: 'background' },
  sweep: { id: (_, taskQueue) => workflowIds.sweepNow(taskQueue), eager: false, queue: 'background' },
  webhook: { id: ({ messageId }) => workflowIds.webhook(messageId), eager: true, queue: 'webhooks' },
} as const satisfies { readonly [Name in keyof Workflows]?: WorkflowRow<Name> };

type StartedWorkflow = keyof typeof WORKFLOWS;

/** A workflow that was started, or that runs already. */
interface Started<Name extends StartedWorkflow> {
  readonly handle: WorkflowHandle<Workflows[Name]>;
  readonly isNew: boolean;
  /** Whether the worker of this process has the first task. */
  readonly isLocal: boolean;
}

/** Limits each call to Temporal: a request waits behind it, or the relay repeats it. */
const CALL_DEADLINE_MS = 2_000;
/** After this a result that its worker should have reported is fetched from Temporal. */
const LATE_RESULT_MS = 1_000;
/** How long a delivery that was answered as pending keeps its place among those that are worked on, ms. */
const LATE_DELIVERY_MS = 15_000;
/** Workers that have finished no delivery for as long are away, ms. */
const WORKERS_AWAY_MS = 5_000;
/** The pause before a payout request is signalled again that the server has lost, ms. */
const SIGNAL_PAUSE_MS = 500;
/** The same for work that another process may have taken. */
const EARLY_FETCH_MS = 200;
/** How long a step of background work lets requests go first, ms. Under steady requests ten holds a second still run. */
const GO_FIRST_MS = 100;
/** How long a shutdown starts waiting hold timers. */
const DRAIN_MS = 2_000;
/** How long the relay waits for the outcome of a delivery before it starts another one. */
const RELAY_WAIT_MS = 2_000;
/** Commissions that are due sooner than this have no hold timer. The sweep, once a minute, costs them less. */
const SHORTEST_HOLD_MS = 2 * MINUTE_MS;
/** How long commissions that are due when they are written are collected for one sweep of their own. */
const SWEEP_NOW_MS = 1_000;
/** A worker that dies in the middle of a task is given up on after this. */
const WORKFLOW_TASK_TIMEOUT = '3s' as const;

/** What the search attributes of a workflow say when it starts. */
type Labels = { readonly [Name in Exclude<SearchAttribute, 'DeliveryState'>]?: string };

interface StartOptions {
  readonly startDelay?: number;
  readonly staticSummary?: string;
  readonly labels?: Labels;
}

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

export interface WorkflowStarterDeps {
  /** Null while Temporal can't be reached. */
  readonly client: () => Client | null;
  /** The task queue of awaited work. */
  readonly taskQueue: string;
  /** Commissions that are due sooner than this are left to the sweep; two minutes by default. Infinity leaves all to it. */
  readonly shortestHoldMs?: number | undefined;
  /** Whether a worker of this task queue runs in this process. Only then are starts eager and results local. */
  readonly hasWorker: boolean;
  /** Sends a result for which nobody waits here to the other processes. */
  readonly sendResult?: (result: SharedResult) => void;
  /** Whether results of other processes arrive as far as is known. They are fetched early if not. */
  readonly isListening?: () => boolean;
  /** None by default: workflows then start without search attributes. */
  readonly known?: () => KnownSearchAttributes;
  readonly logger: Logger;
}

/** What became of a delivery that the relay passed to Temporal. */
export type RelayedStart = 'started' | 'running' | 'refused';

/** Starts workflows on Temporal and passes their results to the requests that wait for them. */
export class TemporalWorkflowStarter implements WorkflowStarter {
  readonly #deps: WorkflowStarterDeps;
  readonly #outcomes = new PendingResults<DeliveryOutcome>();
  readonly #settledRequests = new PendingResults<true>();
  readonly #awaited = new AwaitedCalls();
  readonly #holds: HoldQueue;
  readonly #inFlight = new Set<Promise<unknown>>();
  /** When an outcome of any delivery was last seen, epoch ms. */
  #lastOutcomeAt = 0;
  /** Set while commissions that are due already wait for a sweep. */
  #sweepTimer: NodeJS.Timeout | undefined;

  constructor(deps: WorkflowStarterDeps) {
    this.#deps = deps;
    this.#holds = new HoldQueue({
      startHold: ({ commissionId, appId, dueAt }) =>
        this.#start(
          'hold',
          { commissionId },
          { startDelay: Math.max(0, dueAt - Date.now()), labels: { AppId: appId } },
        ),
      inBackground: (work) => this.#inBackground(work),
      logger: deps.logger,
    });
  }

  /** Whether Temporal responds right now. */
  isReachable(): boolean {
    return this.#deps.client() !== null;
  }

  async processDelivery(
    delivery: DeliveryKeys,
    waitMs: number,
    keepPlace?: KeepPlace,
  ): Promise<DeliveryOutcome | null> {
    const { deliveryId } = delivery;
    const notice = (settled: Promise<void>) => {
      // Without workers a late delivery says nothing about the load: it is stored, and others must be stored as well.
      if (Date.now() - this.#lastOutcomeAt < WORKERS_AWAY_MS) keepPlace?.(settled);
    };
    try {
      const start = async () => {
        const started = await this.#startDelivery(delivery);
        if (started === undefined) return null;
        return {
          fetchAfterMs: started.isLocal ? LATE_RESULT_MS : this.#fetchAfterMs,
          fetch: async (deadline: number) =>
            (await this.#deps.client()?.withDeadline(deadline, () => started.handle.result())) ?? null,
        };
      };
      const late = { forMs: LATE_DELIVERY_MS, notice };
      const outcome = await this.#awaited.run(() => this.#outcomes.wait(deliveryId, { waitMs, start, late }));
      if (outcome !== null) this.#lastOutcomeAt = Date.now();
      return outcome;
    } catch (error) {
      this.#deps.logger.warn({
        deliveryId,
        err: error,
        msg: 'the delivery is stored, but its workflow may not have started; the relay checks it',
      });
      return null;
    }
  }

  async settlePayout(request: PayoutRequestKeys, waitMs: number): Promise<void> {
    try {
      const start = async () => {
        const signalled = await this.#signalPayout(request);
        if (signalled === undefined) return null;
        return {
          fetchAfterMs: this.#fetchAfterMs,
          fetch: async (deadline: number) => {
            await this.#followPayout(signalled, request, deadline);
            return true as const;
          },
        };
      };
      await this.#awaited.run(() => this.#settledRequests.wait(request.id, { waitMs, start }));
    } catch (error) {
      this.#deps.logger.warn({
        payoutRequestId: request.id,
        err: error,
        msg: 'the payout request could not be passed to its workflow',
      });
    }
  }

  /**
   * Waits for the end of the workflow that has received a payout request. Signals again when the server has lost the
   * workflow: one statement on the row of the request decides, so a second signal pays nothing.
   */
  async #followPayout(
    signalled: WorkflowHandle<Workflows['payout']>,
    request: PayoutRequestKeys,
    deadline: number,
  ): Promise<void> {
    let handle: WorkflowHandle<Workflows['payout']> | undefined = signalled;
    for (;;) {
      try {
        if (handle === undefined) handle = await this.#signalPayout(request);
        const found = handle;
        if (found !== undefined) {
          await found.client.withDeadline(deadline, () => found.result());
          return;
        }
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) handle = undefined;
      }
      if (Date.now() + SIGNAL_PAUSE_MS >= deadline) return;
      await sleep(SIGNAL_PAUSE_MS);
    }
  }

  /** Resolves when no request of this process waits for a workflow, and after 100 ms in any case. */
  async letAwaitedGoFirst(): Promise<void> {
    await this.#awaited.letGoFirst(GO_FIRST_MS);
  }

  /**
   * Starts a delivery's workflow and waits a moment for its outcome, so that the relay starts only what the workers can
   * do. A workflow that runs already is left alone. Returns `refused` when Temporal did not take the delivery. Never throws:
   * the relay repeats it.
   */
  async runDelivery(delivery: DeliveryKeys, signal?: AbortSignal): Promise<RelayedStart> {
    const { deliveryId } = delivery;
    let result: RelayedStart = 'refused';
    try {
      await this.#outcomes.wait(deliveryId, {
        waitMs: RELAY_WAIT_MS,
        ...(signal === undefined ? {} : { signal }),
        start: async () => {
          const started = await this.#startDelivery(delivery);
          if (started === undefined) return null;
          result = started.isNew ? 'started' : 'running';
          return started.isNew ? { fetchAfterMs: Infinity, fetch: async () => null } : null;
        },
      });
      return result;
    } catch (error) {
      this.#deps.logger.warn({
        deliveryId,
        err: error,
        msg: 'the workflow of a delivery did not start; the relay tries again',
      });
      return 'refused';
    }
  }

  /**
   * Starts the heal of a binding and waits a moment for its end, as `runDelivery` does.
   */
  async runHeal(bindingId: BindingId, appId: AppId, signal?: AbortSignal): Promise<RelayedStart> {
    let result: RelayedStart = 'refused';
    try {
      const started = await this.#start('heal', { bindingId }, { labels: { AppId: appId } });
      if (started === undefined) return result;
      result = started.isNew ? 'started' : 'running';
      if (started.isNew) await this.#waitForEnd(started.handle, signal);
    } catch (error) {
      this.#deps.logger.warn({
        bindingId,
        err: error,
        msg: 'the heal of a binding did not start or failed; the relay tries again',
      });
    }
    return result;
  }

  healBinding(bindingId: BindingId, appId: AppId): void {
    this.#inBackground(this.#start('heal', { bindingId }, { labels: { AppId: appId } }));
  }

  /** Evaluates the payments whose missing exchange rate has arrived. */
  startConvert(): void {
    this.#inBackground(this.#start('convert', undefined));
  }

  /**
   * Starts or continues a reprocess run. Cancels the workflow of a cancelled run that runs: an activity that waits for its
   * next attempt ends at once.
   */
  startReprocess(reprocessRunId: ReprocessRunId, isCancelled: boolean): void {
    this.#inBackground(this.#continueReprocess(reprocessRunId, isCancelled));
  }

  /** Starts or continues the erasure of a person. */
  startErasure(erasureId: ErasureId): void {
    this.#inBackground(this.#start('erase', { erasureId }));
  }

  /**
   * Starts the workflow of a message to an endpoint. If one runs and the message is due, ends its wait for a later attempt. Never
   * throws: the relay claims a message that is due again.
   */
  async runWebhook({ messageId, appId, due }: ClaimedMessage): Promise<RelayedStart> {
    try {
      const started = await this.#start('webhook', { messageId }, { labels: { AppId: appId } });
      if (started === undefined) return 'refused';
      if (started.isNew) return 'started';
      if (due !== 'later') await this.#endWait(started.handle, due === 'earlier');
      return 'running';
    } catch (error) {
      // It has ended since the start.
      if (error instanceof WorkflowNotFoundError) return 'running';
      this.#deps.logger.warn({
        messageId,
        err: error,
        msg: 'the workflow of a message did not start; the relay tries again',
      });
      return 'refused';
    }
  }

  /**
   * Ends the wait of a message's workflow. A repetition leaves a workflow alone that has a step before it, because the step reads
   * the message anyway: signals would fill its history while workers are away.
   */
  async #endWait(handle: WorkflowHandle, isRepeated: boolean): Promise<void> {
    await handle.client.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
      if (isRepeated) {
        const { pendingWorkflowTask, pendingActivities } = (await handle.describe()).raw;
        if (pendingWorkflowTask != null || (pendingActivities ?? []).length > 0) return;
      }
      await handle.signal(SEND_NOW);
    });
  }

  sendWebhookNow({ messageId, appId }: WebhookMessageKeys): void {
    const temporal = this.#deps.client();
    if (temporal === null) return;
    this.#inBackground(
      temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, () =>
        this.#withLabels({ AppId: appId }, async (attributes) =>
          temporal.workflow.signalWithStart<Workflows['webhook']>('webhook', {
            ...this.#optionsOf('webhook', { messageId }),
            ...attributes,
            signal: SEND_NOW,
            signalArgs: [],
          }),
        ),
      ),
    );
  }

  /** Returns the step that a running workflow retries. Null if there is none, and if Temporal does not say in time. */
  async pendingStep(workflowId: string): Promise<PendingStep | null> {
    const temporal = this.#deps.client();
    if (temporal === null) return null;
    try {
      return await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
        const { raw } = await temporal.workflow.getHandle(workflowId).describe();
        const [pending] = raw.pendingActivities ?? [];
        const step = pending?.activityType?.name;
        return step == null ? null : { step, attempt: pending?.attempt ?? 1 };
      });
    } catch {
      return null;
    }
  }

  /**
   * Deletes the history of a closed workflow. Returns `open` for one that still runs: deleting it would end it. Throws when
   * Temporal can't be reached.
   */
  async deleteHistory(workflowId: string): Promise<'deleted' | 'open' | 'absent'> {
    const temporal = this.#deps.client();
    if (temporal === null) throw new Error('Temporal cannot be reached');
    return await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
      try {
        const { status, runId } = await temporal.workflow.getHandle(workflowId).describe();
        if (status.name === 'RUNNING') return 'open';
        await temporal.workflowService.deleteWorkflowExecution({
          namespace: temporal.options.namespace,
          workflowExecution: { workflowId, runId },
        });
        return 'deleted';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError || grpcCode(error) === GRPC.notFound) return 'absent';
        throw error;
      }
    });
  }

  async #continueReprocess(reprocessRunId: ReprocessRunId, isCancelled: boolean): Promise<void> {
    const started = await this.#start('reprocess', { reprocessRunId });
    if (!isCancelled || started === undefined || started.isNew) return;
    const { handle } = started;
    await handle.client.withDeadline(Date.now() + CALL_DEADLINE_MS, () => handle.cancel());
  }

  /**
   * Starts the hold timers of new commissions, after the responses of their requests. The sweep matures the others: with
   * its next run, or within about a second if a commission is due already, as without a hold period.
   */
  startHolds(commissions: readonly NewCommission[]): void {
    const { shortestHoldMs = SHORTEST_HOLD_MS } = this.#deps;
    const now = Date.now();
    const hasTimer = ({ dueAt }: NewCommission) => Math.max(0, dueAt - now) >= shortestHoldMs;
    this.#holds.add(commissions.filter(hasTimer));
    if (commissions.some((commission) => !hasTimer(commission) && commission.dueAt <= now)) this.#sweepNow();
  }

  /** Starts one sweep for all commissions of the next second. If it runs already, or Temporal is away, the Schedule does it. */
  #sweepNow(): void {
    this.#sweepTimer ??= setTimeout(() => {
      this.#sweepTimer = undefined;
      this.#inBackground(this.#start('sweep', undefined));
    }, SWEEP_NOW_MS).unref();
  }

  /** Passes the outcome of a delivery to the requests that wait for it: here, else in the other processes. */
  reportOutcome(deliveryId: DeliveryId, outcome: DeliveryOutcome): void {
    this.#report({ deliveryId, outcome });
  }

  /** Passes the end of a payout request to the requests that wait for it: here, else in the other processes. */
  reportSettled(requestId: PayoutRequestId): void {
    this.#report({ payoutRequestId: requestId });
  }

  /** Passes a result to the requests that wait for it here. Returns whether there was one. */
  receiveResult(result: SharedResult): boolean {
    if (!('outcome' in result)) return this.#settledRequests.settle(result.payoutRequestId, true);
    this.#lastOutcomeAt = Date.now();
    return this.#outcomes.settle(result.deliveryId, result.outcome);
  }

  #report(result: SharedResult): void {
    if (!this.receiveResult(result)) this.#deps.sendResult?.(result);
  }

  /**
   * Waits until no background start is in flight. Waiting hold timers are started for at most `withinMs`; the sweep
   * replaces the others.
   */
  async drain(withinMs = DRAIN_MS): Promise<void> {
    clearTimeout(this.#sweepTimer);
    this.#inBackground(this.#holds.stop(withinMs));
    await Promise.all(this.#inFlight);
  }

  /** When the result of work that any process may have is fetched, ms after its start. */
  get #fetchAfterMs(): number {
    if (this.#deps.isListening?.() === true) return LATE_RESULT_MS;
    return this.#deps.hasWorker ? EARLY_FETCH_MS : 0;
  }

  /** Starts the workflow of a delivery. Its summary has the ids that founders and operators know. */
  async #startDelivery({ deliveryId, provider, appId, eventId }: DeliveryKeys) {
    return await this.#start(
      'delivery',
      { deliveryId },
      { staticSummary: `${provider} ${appId} ${eventId}`, labels: { AppId: appId, Provider: provider } },
    );
  }

  /** Starts a workflow, or finds the one that runs already. Returns undefined when Temporal can't be reached. */
  async #start<Name extends StartedWorkflow>(
    name: Name,
    input: Input<Name>,
    { labels = {}, ...options }: StartOptions = {},
  ): Promise<Started<Name> | undefined> {
    const { client, hasWorker } = this.#deps;
    const temporal = client();
    if (temporal === null) return undefined;
    const started = this.#optionsOf(name, input);
    return await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
      try {
        const handle = await this.#withLabels(labels, async (attributes) =>
          temporal.workflow.start<Workflows[Name]>(name, {
            ...started,
            ...options,
            ...attributes,
            requestEagerStart: WORKFLOWS[name].eager && hasWorker,
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

  /** Signals the affiliate's payout workflow and starts it when none runs. Returns undefined as `#start` does. */
  async #signalPayout({
    id,
    appId,
    affiliateId,
  }: PayoutRequestKeys): Promise<WorkflowHandle<Workflows['payout']> | undefined> {
    const temporal = this.#deps.client();
    if (temporal === null) return undefined;
    return await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, () =>
      this.#withLabels({ AppId: appId }, async (attributes) =>
        temporal.workflow.signalWithStart<Workflows['payout'], [string]>('payout', {
          ...this.#optionsOf('payout', { affiliateId }),
          ...attributes,
          signal: PAYOUT_REQUESTED,
          signalArgs: [id],
        }),
      ),
    );
  }

  /**
   * Starts a workflow with those of its search attributes that the namespace has. When the server does not know them any
   * more, as after a wipe, starts it without, and so all others until the next set-up.
   */
  async #withLabels<T>(
    labels: Labels,
    start: (attributes: Pick<WorkflowStartOptions, 'typedSearchAttributes'>) => Promise<T>,
  ): Promise<T> {
    const { searchAttributes, forgetSearchAttributes } = this.#deps.known?.() ?? NO_SEARCH_ATTRIBUTES;
    const typedSearchAttributes = SEARCH_ATTRIBUTE_KEYS.flatMap((key) => {
      const name = key.name as keyof Labels;
      const value = labels[name];
      return value === undefined || !searchAttributes.has(name) ? [] : [{ key, value }];
    });
    if (typedSearchAttributes.length === 0) return await start({});
    try {
      return await start({ typedSearchAttributes });
    } catch (error) {
      if (grpcCode((error as Error).cause) !== GRPC.invalidArgument) throw error;
      const handle = await start({});
      forgetSearchAttributes();
      return handle;
    }
  }

  /** Waits for the end of a workflow that the relay started, for as long as for an outcome. It may end later, or fail. */
  async #waitForEnd(handle: WorkflowHandle, signal?: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const end = handle.client
      .withDeadline(Date.now() + RELAY_WAIT_MS, () => handle.result())
      .catch(() => null);
    const stopped = new Promise<void>((resolve) => {
      signal?.addEventListener('abort', () => resolve(), { once: true, signal: ended.signal });
    });
    await Promise.race([end, stopped]);
    ended.abort();
  }

  #optionsOf<Name extends StartedWorkflow>(name: Name, input: Input<Name>) {
    const { taskQueue } = this.#deps;
    const { id, queue } = WORKFLOWS[name] as WorkflowRow<Name>;
    return {
      taskQueue: QUEUES[queue](taskQueue),
      workflowId: id(input, taskQueue),
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
      args: (input === undefined ? [] : [input]) as Parameters<Workflows[Name]>,
    };
  }

  #inBackground(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) =>
        this.#deps.logger.warn({
          err: error,
          msg: 'a background start failed; the relay or the sweep does the work later',
        }),
      )
      .finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
  }
}
