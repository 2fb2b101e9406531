import { WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import type { Logger } from 'pino';
import type { PayoutRunKeys } from '../src/domain/payout-run.ts';
import type { HeldCommission } from '../src/db/maturing.ts';
import type { EmailKeys } from '../src/domain/email.ts';
import type { ClaimedMessage } from '../src/db/webhook-attempts.ts';
import type { AppId, BindingId, ReprocessRunId } from '../src/domain/ids.ts';
import type { WebhookMessageKeys } from '../src/domain/outgoing-webhooks.ts';
import { MINUTE_MS } from '../src/domain/time.ts';
import { SEND_NOW } from '../src/domain/signals.ts';
import { RELAY_WAIT_MS } from './awaited-delivery.ts';
import type { RelayedStart } from './awaited-delivery.ts';
import { HoldQueue } from './hold-queue.ts';
import { CALL_DEADLINE_MS } from './start.ts';
import type { Input, StartedWorkflow, Starter } from './start.ts';

/** How long a shutdown starts waiting hold timers, ms. */
const DRAIN_MS = 2_000;
/** Commissions that are due sooner than this have no hold timer. The sweep, once a minute, costs them less. */
const SHORTEST_HOLD_MS = 2 * MINUTE_MS;
/** How long commissions that are due when they are written are collected for one sweep of their own, ms. */
const SWEEP_NOW_MS = 1_000;

/** A reprocess run that the relay passes to Temporal. */
interface ClaimedRun {
  readonly id: ReprocessRunId;
  readonly appId: AppId;
  readonly isCancelled: boolean;
}

/** Waits for the end of a workflow that the relay started, for as long as for an outcome. It may end later, or fail. */
async function waitForEnd(handle: WorkflowHandle, signal?: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const end = handle.client.withDeadline(Date.now() + RELAY_WAIT_MS, () => handle.result()).catch(() => null);
  const stopped = new Promise<void>((resolve) => {
    signal?.addEventListener('abort', () => resolve(), { once: true, signal: ended.signal });
  });
  await Promise.race([end, stopped]);
  ended.abort();
}

/**
 * Ends the wait of a message's workflow. A repetition leaves a workflow alone that has a step before it, because the step reads
 * the message anyway: signals would fill its history while workers are unavailable.
 */
async function endWait(handle: WorkflowHandle, isRepeated: boolean): Promise<void> {
  await handle.client.withDeadline(Date.now() + CALL_DEADLINE_MS, async () => {
    if (isRepeated) {
      const { pendingWorkflowTask, pendingActivities } = (await handle.describe()).raw;
      if (pendingWorkflowTask != null || (pendingActivities ?? []).length > 0) return;
    }
    await handle.signal(SEND_NOW);
  });
}

export interface BackgroundDeps {
  readonly starter: Starter;
  /** Commissions that are due sooner than this are left to the sweep; two minutes by default. Infinity leaves all to it. */
  readonly shortestHoldMs?: number | undefined;
  readonly logger: Logger;
}

/** Work that nobody waits for. What does not start is started later, by the relay or the sweep. */
export function backgroundWork({ starter, shortestHoldMs = SHORTEST_HOLD_MS, logger }: BackgroundDeps) {
  const inFlight = new Set<Promise<unknown>>();
  /** Set while commissions that are due already wait for a sweep. */
  let sweepTimer: NodeJS.Timeout | undefined;

  const inBackground = (work: Promise<unknown>): void => {
    const tracked = work
      .catch((error: unknown) =>
        logger.warn({
          err: error,
          msg: 'a background start failed; the relay or the sweep does the work later',
        }),
      )
      .finally(() => inFlight.delete(tracked));
    inFlight.add(tracked);
  };

  const startHeal = async (bindingId: BindingId, appId: AppId) =>
    await starter.start('heal', { bindingId }, { labels: { AppId: appId } });

  const holds = new HoldQueue({
    startHold: ({ commissionId, appId, dueAt }) =>
      starter.start(
        'hold',
        { commissionId },
        { startDelay: Math.max(0, dueAt - Date.now()), labels: { AppId: appId } },
      ),
    inBackground,
    logger,
  });

  /** Starts one sweep for all commissions of the next second. If it runs already, or Temporal is unavailable, the Schedule does it. */
  const sweepNow = (): void => {
    sweepTimer ??= setTimeout(() => {
      sweepTimer = undefined;
      inBackground(starter.start('sweep', undefined));
    }, SWEEP_NOW_MS).unref();
  };

  const continueReprocess = async ({ id, appId, isCancelled }: ClaimedRun): Promise<void> => {
    const started = await starter.start('reprocess', { reprocessRunId: id }, { labels: { AppId: appId } });
    if (!isCancelled || started === undefined || started.isNew) return;
    const { handle } = started;
    await handle.client.withDeadline(Date.now() + CALL_DEADLINE_MS, () => handle.cancel());
  };

  return {
    /**
     * Starts the hold timers of new commissions, after the responses of their requests. The sweep matures the others: with
     * its next run, or within about a second if a commission is due already, as without a hold period.
     */
    startHolds(commissions: readonly HeldCommission[]): void {
      const now = Date.now();
      const hasTimer = ({ dueAt }: HeldCommission) => Math.max(0, dueAt - now) >= shortestHoldMs;
      holds.add(commissions.filter(hasTimer));
      if (commissions.some((commission) => !hasTimer(commission) && commission.dueAt <= now)) sweepNow();
    },

    /** Starts the heal of a binding: the earlier payments of its user are evaluated again. */
    healBinding(bindingId: BindingId, appId: AppId): void {
      inBackground(startHeal(bindingId, appId));
    },

    /** Starts the heal of a binding and waits a moment for its end, as `runDelivery` does. */
    async runHeal(bindingId: BindingId, appId: AppId, signal?: AbortSignal): Promise<RelayedStart> {
      let result: RelayedStart = 'refused';
      try {
        const started = await startHeal(bindingId, appId);
        if (started === undefined) return result;
        result = started.isNew ? 'started' : 'running';
        if (started.isNew) await waitForEnd(started.handle, signal);
      } catch (error) {
        logger.warn({
          bindingId,
          err: error,
          msg: 'the heal of a binding did not start or failed; the relay tries again',
        });
      }
      return result;
    },

    /** Starts a workflow, or finds the one that runs already. Its failure is logged: the relay starts it again. */
    startInBackground<Name extends StartedWorkflow>(name: Name, input: Input<Name>, appId?: AppId): void {
      inBackground(starter.start(name, input, appId === undefined ? {} : { labels: { AppId: appId } }));
    },

    /** See `WorkflowStarter.startPayoutRun`. */
    startPayoutRun({ runId, appId }: PayoutRunKeys): void {
      inBackground(starter.start('payoutRun', { runId }, { labels: { AppId: appId } }));
    },

    /**
     * Starts or continues a reprocess run. Cancels the workflow of a cancelled run that runs: an activity that waits for its
     * next attempt ends at once.
     */
    startReprocess(run: ClaimedRun): void {
      inBackground(continueReprocess(run));
    },

    /**
     * Starts the workflow of a message to an endpoint. If one runs and the message is due, ends its wait for a later attempt. Never
     * throws: the relay claims a message that is due again.
     */
    async runWebhook({ messageId, appId, due }: ClaimedMessage): Promise<RelayedStart> {
      try {
        const started = await starter.start('webhook', { messageId }, { labels: { AppId: appId } });
        if (started === undefined) return 'refused';
        if (started.isNew) return 'started';
        if (due !== 'later') await endWait(started.handle, due === 'earlier');
        return 'running';
      } catch (error) {
        // It has ended since the start.
        if (error instanceof WorkflowNotFoundError) return 'running';
        logger.warn({
          messageId,
          err: error,
          msg: 'the workflow of a message did not start; the relay tries again',
        });
        return 'refused';
      }
    },

    /** Starts the workflow of a mail. Never throws: the relay claims a mail that waits again. */
    async runEmail({ emailId, appId, isUrgent }: EmailKeys): Promise<RelayedStart> {
      try {
        const started = await starter.start(
          'email',
          { emailId },
          { ...(appId === null ? {} : { labels: { AppId: appId } }), isUrgent },
        );
        if (started === undefined) return 'refused';
        return started.isNew ? 'started' : 'running';
      } catch (error) {
        logger.warn({
          emailId,
          err: error,
          msg: 'the workflow of a mail did not start; the relay tries again',
        });
        return 'refused';
      }
    },

    /** See `WorkflowStarter.sendWebhookNow`. */
    sendWebhookNow({ messageId, appId }: WebhookMessageKeys): void {
      inBackground(
        starter.signalWithStart('webhook', { messageId }, { signal: SEND_NOW, labels: { AppId: appId } }),
      );
    },

    /**
     * Waits until no background start is in flight. Waiting hold timers are started for at most `withinMs`; the sweep
     * replaces the others.
     */
    async drain(withinMs = DRAIN_MS): Promise<void> {
      clearTimeout(sweepTimer);
      inBackground(holds.stop(withinMs));
      await Promise.all(inFlight);
    },
  };
}
