import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import type { Logger } from 'pino';
import {
  advanceReprocessRun,
  cancelReprocessRun,
  findReprocessRun,
  finishReprocessRun,
  recordReprocessError,
} from '../src/db/reprocess.ts';
import {
  findNextDeliveries,
  findPlannedDeliveries,
  markApplied,
  recordPlans,
} from '../src/db/reprocess-deliveries.ts';
import type { ReprocessRun } from '../src/db/reprocess.ts';
import type { ReprocessedDelivery } from '../src/db/reprocess-deliveries.ts';
import { isEnvironmentFault, isStatementTooLarge } from '../src/db/errors.ts';
import type { Sql } from '../src/db/sql.ts';
import type { DeliveryId } from '../src/domain/ids.ts';
import { throwIfCancelled } from './cancellation.ts';
import { DeliveryContext } from './delivery-context.ts';
import { causeForFounder } from './failures.ts';
import { parseId } from './parse-id.ts';
import { reprocessDelivery } from './reprocess-delivery.ts';
import { failedAt, planPage, refusalOf } from './reprocess-plan.ts';
import type { PlanDeps } from './reprocess-plan.ts';
import type { WorkEvents } from './work-events.ts';

export interface ReprocessActivityDeps extends PlanDeps, Pick<WorkEvents, 'onCommissions' | 'onBindings'> {
  readonly sql: Sql;
  readonly logger: Logger;
}

const PAGE = 20;

/** Progress of a reprocess run, in deliveries. */
export interface ReprocessProgress {
  /** Deliveries processed so far. */
  readonly seen: number;
  /** Deliveries that the run covers. */
  readonly deliveries: number;
  /** Deliveries that today's code treats differently. */
  readonly changed: number;
  /** Deliveries to which something was appended. */
  readonly applied: number;
  readonly done: boolean;
}

export interface ReprocessActivities {
  reprocessPage(reprocessRunId: string): Promise<ReprocessProgress>;
  cancelReprocess(reprocessRunId: string): Promise<void>;
}

/** Applies the plan of one delivery. In a cancelled run a failure is final, where another run would retry. */
async function apply(
  deps: ReprocessActivityDeps,
  { id: reprocessRunId, appId, isCancelled }: ReprocessRun,
  deliveryId: DeliveryId,
): Promise<void> {
  const { sql, logger, onCommissions, onBindings } = deps;
  try {
    const context = new DeliveryContext(sql, deps.secretBox, deliveryId);
    const { commissions, bindings } = await reprocessDelivery(sql, deps, context, reprocessRunId);
    onCommissions(commissions);
    onBindings(bindings, appId);
    await markApplied(sql, reprocessRunId, deliveryId, null);
    logger.info({
      reprocessRunId,
      deliveryId,
      commissions: commissions.length,
      msg: 'delivery reprocessed',
    });
  } catch (error) {
    // A statement that needs too much needs it again.
    const isFinal = isCancelled && (!isEnvironmentFault(error) || isStatementTooLarge(error));
    const refusal = refusalOf(error) ?? (isFinal ? causeForFounder(error) : undefined);
    if (refusal === undefined) throw failedAt(deliveryId, error);
    await markApplied(sql, reprocessRunId, deliveryId, refusal);
    logger.warn({ reprocessRunId, deliveryId, refusal, msg: 'delivery not reprocessed' });
  }
}

/**
 * Plans the next deliveries, records the plans and, unless it is a dry run, applies them. A cancelled run applies the
 * plans that it had recorded, so that no delivery is left half done. Returns whether the run is done.
 */
async function reprocessNext(deps: ReprocessActivityDeps, run: ReprocessRun): Promise<boolean> {
  const { sql } = deps;
  let page: readonly ReprocessedDelivery[] = [];
  if (!run.isCancelled) {
    const next = await findNextDeliveries(sql, run, PAGE);
    if (next.length === 0) return true;
    const { planned, plans } = await planPage(deps, run, next);
    page = next.slice(0, planned);
    await recordPlans(sql, run, plans);
  }
  const pending = await findPlannedDeliveries(sql, run.id);
  for (const { deliveryId } of run.dryRun ? [] : pending.filter(({ isOpen }) => isOpen)) {
    throwIfCancelled();
    await apply(deps, run, deliveryId);
  }
  await advanceReprocessRun(sql, run, run.isCancelled ? pending : page);
  return run.isCancelled;
}

/** Creates the activities of the reprocess workflow. */
export function createReprocessActivities(deps: ReprocessActivityDeps): ReprocessActivities {
  const { sql, logger } = deps;
  return {
    /**
     * Reprocesses one page of a run. Its recorded plans are retained, so the report of a page that died in between is
     * complete. A failure is recorded on the run before Temporal retries it.
     */
    reprocessPage: async (id) => {
      const reprocessRunId = parseId('reprocessRun', id);
      const run = await findReprocessRun(sql, reprocessRunId);
      if (run === undefined) {
        throw ApplicationFailure.nonRetryable(
          `no reprocess run ${reprocessRunId} in this database`,
          'UnknownReprocessRun',
        );
      }
      const done = await reprocessNext(deps, run).catch(async (error: unknown) => {
        if (!(error instanceof CancelledFailure))
          await recordReprocessError(sql, reprocessRunId, causeForFounder(error)).catch(() => {});
        throw error;
      });
      if (done) await finishReprocessRun(sql, reprocessRunId);
      const { seen, deliveries, changed, applied } = (await findReprocessRun(sql, reprocessRunId)) ?? run;
      if (done) logger.info({ reprocessRunId, seen, changed, applied, msg: 'reprocess run finished' });
      return { seen, deliveries, changed, applied, done };
    },

    /** Cancels a run whose workflow was cancelled. The next page is its last. */
    cancelReprocess: async (id) => {
      await cancelReprocessRun(sql, parseId('reprocessRun', id));
    },
  };
}
