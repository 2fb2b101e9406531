import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Client, WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { Logger } from 'pino';
import type { NewCommission } from '../src/db/payments.ts';
import type { BindingId, DeliveryId, PayoutRequestId, ReprocessRunId } from '../src/domain/ids.ts';
import { workflowIds } from '../src/domain/workflow-ids.ts';
import type { DeliveryOutcome, WorkflowStarter } from '../src/http/deps.ts';
import type * as workflows from '../workflows/index.ts';
import { PAYOUT_REQUESTED } from '../workflows/types.ts';
import type { DeliveryResult } from '../workflows/types.ts';
import { PendingResults } from './pending-results.ts';

/** No call to Temporal may take longer than this: a request is waiting behind it, or a relay will come by again. */
const CALL_DEADLINE_MS = 2_000;
/** When the outcome has not been told in this process by then, the work may have gone to another one: ask Temporal. */
const ELSEWHERE_AFTER_MS = 200;
/** A worker that died in the middle of a task is given up on after this. */
const WORKFLOW_TASK_TIMEOUT = '3s';
/** Hold timers are started two at a time, behind the requests that are waiting for an answer. */
const HOLD_STARTS_AT_ONCE = 2;
/** Hold timers that may wait for their start; the sweep matures what finds no place. */
const MAX_WAITING_HOLDS = 100_000;

export interface WorkflowStarterDeps {
  /** Null while Temporal can't be reached. */
  readonly client: () => Client | null;
  readonly taskQueue: string;
  /** Whether a worker of this task queue runs in this process: only then can a start be eager. */
  readonly eager: boolean;
  readonly logger: Logger;
}

/** Durable work on Temporal, with the desks where this process's activities hand in their outcomes. */
export interface TemporalWorkflowStarter extends WorkflowStarter {
  readonly onOutcome: (deliveryId: DeliveryId, result: DeliveryResult) => void;
  readonly onSettled: (requestId: PayoutRequestId) => void;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  readonly onBindings: (bindings: readonly BindingId[]) => void;
  /** Starts a delivery's workflow without waiting for it. Says whether Temporal took it. */
  readonly startDelivery: (deliveryId: DeliveryId) => Promise<boolean>;
  /** Has the payments evaluated that waited for an exchange rate which has arrived. */
  readonly startConvert: () => void;
  /** Has stored deliveries run again, as the operator ordered. */
  readonly startReprocess: (reprocessRunId: ReprocessRunId) => void;
  /** Whether Temporal answers right now. */
  readonly reachable: () => boolean;
  /** Waits until the starts that are under way are through. */
  readonly drain: () => Promise<void>;
}

/** Whether the outcome is told in this process soon; also true once nobody waits for it any more. */
async function toldHere(answer: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  const late = sleep(ELSEWHERE_AFTER_MS, false, { signal }).catch(() => true);
  return await Promise.race([answer.then(() => true), late]);
}

function asOutcome(result: DeliveryResult): DeliveryOutcome {
  return result as DeliveryOutcome;
}

/** Builds the Temporal side of everything that outlives a request. */
export function createWorkflowStarter({
  client,
  taskQueue,
  eager,
  logger,
}: WorkflowStarterDeps): TemporalWorkflowStarter {
  const outcomes = new PendingResults<DeliveryResult>();
  const settled = new PendingResults<true>();
  const underWay = new Set<Promise<unknown>>();

  function inBackground(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) =>
        logger.warn({ err: error, msg: 'a background start failed, a sweep or relay will do it' }),
      )
      .finally(() => underWay.delete(tracked));
    underWay.add(tracked);
  }

  /** Starts a workflow; one that runs already is as good as a new one. Undefined when Temporal can't be reached. */
  async function start<W extends Workflow>(
    workflow: string,
    options: Omit<WorkflowStartOptions<W>, 'taskQueue'>,
  ): Promise<WorkflowHandle<W> | undefined> {
    const temporal = client();
    if (temporal === null) return undefined;
    return await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
      try {
        return (await temporal.workflow.start(workflow, {
          taskQueue,
          workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
          ...options,
        } as WorkflowStartOptions<W>)) as WorkflowHandle<W>;
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        return temporal.workflow.getHandle<W>(options.workflowId);
      }
    });
  }

  const startDelivery = (deliveryId: DeliveryId) =>
    start<typeof workflows.delivery>('delivery', {
      workflowId: workflowIds.delivery(deliveryId),
      args: [{ deliveryId }],
      requestEagerStart: eager,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });

  const startHeal = (bindingId: BindingId) =>
    inBackground(
      start<typeof workflows.heal>('heal', {
        workflowId: workflowIds.heal(bindingId),
        args: [{ bindingId }],
        requestEagerStart: eager,
      }),
    );

  const waitingHolds: NewCommission[] = [];
  let holdStarters = 0;

  async function startHolds(): Promise<void> {
    holdStarters += 1;
    try {
      for (let next = waitingHolds.shift(); next !== undefined; next = waitingHolds.shift()) {
        const { commissionId, dueAt } = next;
        await start<typeof workflows.hold>('hold', {
          workflowId: workflowIds.hold(commissionId),
          args: [{ commissionId }],
          startDelay: Math.max(0, dueAt - Date.now()),
        });
      }
    } finally {
      holdStarters -= 1;
    }
  }

  function startWaitingHolds(): void {
    if (waitingHolds.length > 0 && holdStarters < HOLD_STARTS_AT_ONCE) inBackground(startHolds());
  }

  return {
    processDelivery: async (deliveryId, waitMs) => {
      const deadline = Date.now() + waitMs;
      const { answer, forget } = outcomes.expect(deliveryId);
      const stop = new AbortController();
      const timeOut = async () => {
        await sleep(Math.max(0, deadline - Date.now()), undefined, { signal: stop.signal }).catch(() => {});
        return null;
      };
      const begin = async (): Promise<DeliveryResult | null> => {
        const handle = await startDelivery(deliveryId);
        if (handle === undefined) return null;
        // In this process the activity tells at once; where the work went elsewhere, the workflow's own result does.
        if (eager && (await toldHere(answer, stop.signal))) return await answer;
        const temporal = client();
        return temporal === null ? null : await temporal.withDeadline(deadline, () => handle.result());
      };
      try {
        const result = await Promise.race([
          begin().catch((error: unknown) => {
            logger.warn({
              deliveryId,
              err: error,
              msg: 'the delivery is kept, its workflow is not known to have begun',
            });
            return null;
          }),
          answer,
          timeOut(),
        ]);
        return result === null ? null : asOutcome(result);
      } finally {
        stop.abort();
        forget();
      }
    },

    healBinding: startHeal,

    settlePayout: async (affiliateId, requestId, waitMs) => {
      const temporal = client();
      if (temporal === null) return;
      const deadline = Date.now() + waitMs;
      const { answer, forget } = settled.expect(requestId);
      const stop = new AbortController();
      try {
        const begin = async () => {
          const handle = await temporal.withDeadline(Date.now() + CALL_DEADLINE_MS, () =>
            temporal.workflow.signalWithStart<typeof workflows.payout, [string]>('payout', {
              taskQueue,
              workflowId: workflowIds.payout(affiliateId),
              workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
              args: [{ affiliateId }],
              signal: PAYOUT_REQUESTED,
              signalArgs: [requestId],
            }),
          );
          if (eager && (await toldHere(answer, stop.signal))) return;
          await temporal.withDeadline(deadline, () => handle.result());
        };
        const begun = begin();
        // When the answer comes first, the long poll is left behind; its end is nobody's concern.
        begun.catch(() => {});
        await Promise.race([begun, answer, sleep(waitMs, undefined, { signal: stop.signal })]);
      } catch (error) {
        logger.warn({
          payoutRequestId: requestId,
          err: error,
          msg: 'the payout request could not be handed to its workflow',
        });
      } finally {
        stop.abort();
        forget();
      }
    },

    startDelivery: async (deliveryId) => {
      try {
        return (await startDelivery(deliveryId)) !== undefined;
      } catch (error) {
        logger.warn({
          deliveryId,
          err: error,
          msg: 'the relay could not start a delivery, it will try again',
        });
        return false;
      }
    },

    onOutcome: (deliveryId, result) => outcomes.settle(deliveryId, result),
    onSettled: (requestId) => settled.settle(requestId, true),
    onCommissions: (commissions) => {
      const room = MAX_WAITING_HOLDS - waitingHolds.length;
      waitingHolds.push(...commissions.slice(0, room));
      if (room < commissions.length) {
        logger.warn({ msg: 'too many hold timers wait for their start, the sweep will mature what is due' });
      }
      // After the answer: the request that waits for this commission comes first.
      setImmediate(startWaitingHolds);
    },
    onBindings: (bindings) => {
      for (const bindingId of bindings) startHeal(bindingId);
    },
    startConvert: () =>
      inBackground(
        start<typeof workflows.convert>('convert', {
          workflowId: workflowIds.convert(taskQueue),
          args: [],
          requestEagerStart: eager,
        }),
      ),
    startReprocess: (reprocessRunId) =>
      inBackground(
        start<typeof workflows.reprocess>('reprocess', {
          workflowId: workflowIds.reprocess(reprocessRunId),
          args: [{ reprocessRunId }],
          requestEagerStart: eager,
        }),
      ),
    reachable: () => client() !== null,
    drain: async () => {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      await Promise.all(underWay);
    },
  };
}
