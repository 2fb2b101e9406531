import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import type { PayoutRequestKeys } from '../src/domain/payout.ts';
import type { PayoutRequestId } from '../src/domain/ids.ts';
import { PAYOUT_REQUESTED } from '../src/domain/signals.ts';
import type { AwaitedDeps } from './awaited-delivery.ts';
import { deadlineOf } from './awaited-results.ts';
import type { Workflows } from './start.ts';

type PayoutHandle = WorkflowHandle<Workflows['payout']>;

/** The pause before a payout request is signalled again that the server has lost, ms. */
const SIGNAL_PAUSE_MS = 500;
/**
 * Limits a signal, ms. After an outage, a busy server loads the workflow in several statements first; a signal that is given up
 * sooner makes it begin again, and the next ones find the workflow busy.
 */
const SIGNAL_DEADLINE_MS = 10_000;

/** Payout requests whose end somebody waits for. */
export function awaitedPayouts({ starter, results, awaited, logger }: AwaitedDeps) {
  /** Signals that are on their way. A repeated call for a request shares the one before. */
  const signals = new Map<PayoutRequestId, Promise<PayoutHandle | undefined>>();

  /** Signals the affiliate's payout workflow and starts it when none runs. Returns undefined when Temporal can't be reached. */
  const signalPayout = async ({ id, appId, affiliateId }: PayoutRequestKeys) => {
    const sent = signals.get(id);
    if (sent !== undefined) return await sent;
    const signal = starter
      .signalWithStart(
        'payout',
        { affiliateId },
        { signal: PAYOUT_REQUESTED, signalArgs: [id], labels: { AppId: appId } },
        Date.now() + SIGNAL_DEADLINE_MS,
      )
      .finally(() => signals.delete(id));
    signals.set(id, signal);
    return await signal;
  };

  /**
   * Waits for the end of the workflow that has received a payout request. Signals again when the server has lost the
   * workflow: one statement on the row of the request decides, so a second signal pays nothing.
   */
  const followPayout = async (
    signalled: PayoutHandle,
    request: PayoutRequestKeys,
    endsAt: number,
  ): Promise<void> => {
    let handle: PayoutHandle | undefined = signalled;
    for (;;) {
      try {
        handle ??= await signalPayout(request);
        const found = handle;
        if (found !== undefined) {
          await found.client.withDeadline(deadlineOf(endsAt), () => found.result());
          return;
        }
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) handle = undefined;
      }
      if (performance.now() + SIGNAL_PAUSE_MS >= endsAt) return;
      await sleep(SIGNAL_PAUSE_MS);
    }
  };

  return {
    /** See `WorkflowStarter.settlePayout`. */
    async settlePayout(request: PayoutRequestKeys, waitMs: number): Promise<void> {
      try {
        const start = async () => {
          const signalled = await signalPayout(request);
          if (signalled === undefined) return null;
          return {
            fetchAfterMs: results.fetchAfterMs,
            fetch: async (endsAt: number) => {
              await followPayout(signalled, request, endsAt);
              return true as const;
            },
          };
        };
        await awaited.run(() => results.settledRequests.wait(request.id, { waitMs, start }));
      } catch (error) {
        logger.warn({
          payoutRequestId: request.id,
          err: error,
          msg: 'the payout request could not be passed to its workflow',
        });
      }
    },
  };
}
