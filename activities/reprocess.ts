import { ApplicationFailure } from '@temporalio/activity';
import type { Logger } from 'pino';
import { loggedError } from '../src/config/logger.ts';
import { SecretUnreadable } from '../src/config/secret-box.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import type { NewCommission } from '../src/db/payments.ts';
import type { DryRun } from '../src/db/with-rollback.ts';
import {
  advanceReprocessRun,
  findDependencies,
  findNextDeliveries,
  findPlannedDeliveries,
  findReprocessRun,
  finishReprocessRun,
  markApplied,
  recordReprocessError,
  recordPlans,
} from '../src/db/reprocess.ts';
import type { DeliveryPlan, ReprocessRun, ReprocessedDelivery } from '../src/db/reprocess.ts';
import { isConnectionFailure, violatedConstraint } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import type { BindingId, DeliveryId } from '../src/domain/ids.ts';
import type { ReprocessChange } from '../src/domain/reprocess.ts';
import type { ReprocessProgress } from '../src/domain/workflow-contracts.ts';
import { DeliveryContext, UnknownProvider } from './delivery-context.ts';
import { causeForFounder } from './failures.ts';
import { parseId } from './parse-id.ts';
import { namesOf, reprocessDelivery } from './reprocess-delivery.ts';

export interface ReprocessActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Runs work on the service's database and rolls it back (`src/db/with-rollback.ts`). */
  readonly withRollback: <T>(work: (dryRun: DryRun) => Promise<T>) => Promise<T>;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

const PAGE = 20;
/** Limits the dry run of a page: the rows that it changes are locked until its end. */
const DRY_RUN_MS = 250;
/** Earlier deliveries that a dry run processes before a delivery that depends on them. Their payments are locked, too. */
const DEPENDENCIES_LIMIT = 50;

export interface ReprocessActivities {
  reprocessPage(reprocessRunId: string): Promise<ReprocessProgress>;
}

/** Returns why a delivery can never be reprocessed; undefined for a failure that a retry may avoid. */
function refusalOf(error: unknown): string | undefined {
  const constraint = violatedConstraint(error);
  if (constraint !== undefined) {
    return `the database rejects it: ${constraint === '' ? loggedError(error).message : constraint}`;
  }
  return error instanceof SecretUnreadable || error instanceof UnknownProvider ? error.message : undefined;
}

/** Returns the failure of a run with the delivery that it happened at. */
function failedAt(deliveryId: DeliveryId, error: unknown): Error {
  return new Error(`delivery ${deliveryId}: ${causeForFounder(error)}`, { cause: error });
}

/** The activities of the reprocess workflow. */
export function createReprocessActivities(deps: ReprocessActivityDeps): ReprocessActivities {
  const { sql, secretBox, logger, withRollback, onCommissions, onBindings } = deps;

  /** Runs one delivery inside the dry run, on top of the deliveries before it, and returns its changes. */
  async function dryRunDelivery(
    { sql: dryRunSql, savepoint }: DryRun,
    run: ReprocessRun,
    context: DeliveryContext,
  ): Promise<readonly ReprocessChange[]> {
    try {
      return (await savepoint(async () => await reprocessDelivery(dryRunSql, secretBox, context, run.id)))
        .changes;
    } catch (error) {
      const today = refusalOf(error);
      if (today === undefined) throw error;
      return [{ what: 'refused', stored: null, today, action: 'keep' }];
    }
  }

  /**
   * Runs a page and rolls it back, each delivery on top of those before it, until the time is up. Returns how many
   * deliveries it ran, and the plans of those that differ.
   */
  async function plan(
    run: ReprocessRun,
    page: readonly ReprocessedDelivery[],
  ): Promise<{ planned: number; plans: DeliveryPlan[] }> {
    return await withRollback(async (dryRun) => {
      const endsAt = performance.now() + DRY_RUN_MS;
      const ran = new Set<DeliveryId>();
      const plans: DeliveryPlan[] = [];
      let planned = 0;
      const planOne = async (delivery: ReprocessedDelivery): Promise<void> => {
        const context = new DeliveryContext(dryRun.sql, delivery.deliveryId);
        const names = await namesOf(context);
        // A real run has applied the earlier pages; a dry run has to process its dependencies again.
        const dependencies = run.dryRun
          ? await findDependencies(dryRun.sql, run.id, delivery, names.requires, DEPENDENCIES_LIMIT)
          : [];
        for (const deliveryId of dependencies) {
          if (ran.has(deliveryId)) continue;
          await dryRunDelivery(dryRun, run, new DeliveryContext(dryRun.sql, deliveryId));
          ran.add(deliveryId);
        }
        const changes = await dryRunDelivery(dryRun, run, context);
        ran.add(delivery.deliveryId);
        if (changes.length > 0) plans.push({ ...delivery, changes, names });
        planned += 1;
      };
      for (const delivery of page) {
        if (planned > 0 && performance.now() > endsAt) break;
        await planOne(delivery).catch((error: unknown) => {
          throw failedAt(delivery.deliveryId, error);
        });
      }
      return { planned, plans };
    });
  }

  /** Applies the plan of one delivery. In a cancelled run a failure is final, where another run would retry. */
  async function apply(
    { id: reprocessRunId, isCancelled }: ReprocessRun,
    deliveryId: DeliveryId,
  ): Promise<void> {
    try {
      const context = new DeliveryContext(sql, deliveryId);
      const { commissions, bindings } = await reprocessDelivery(sql, secretBox, context, reprocessRunId);
      onCommissions(commissions);
      onBindings(bindings);
      await markApplied(sql, reprocessRunId, deliveryId, null);
      logger.info({
        reprocessRunId,
        deliveryId,
        commissions: commissions.length,
        msg: 'delivery reprocessed',
      });
    } catch (error) {
      const isFinal = isCancelled && !isConnectionFailure(error);
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
  async function reprocessNext(run: ReprocessRun): Promise<boolean> {
    let page: readonly ReprocessedDelivery[] = [];
    if (!run.isCancelled) {
      const next = await findNextDeliveries(sql, run, PAGE);
      if (next.length === 0) return true;
      const { planned, plans } = await plan(run, next);
      page = next.slice(0, planned);
      await recordPlans(sql, run, plans);
    }
    const pending = await findPlannedDeliveries(sql, run.id);
    for (const { deliveryId } of run.dryRun ? [] : pending.filter(({ isOpen }) => isOpen)) {
      await apply(run, deliveryId);
    }
    await advanceReprocessRun(sql, run, run.isCancelled ? pending : page);
    return run.isCancelled;
  }

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
      const done = await reprocessNext(run).catch(async (error: unknown) => {
        await recordReprocessError(sql, reprocessRunId, causeForFounder(error)).catch(() => {});
        throw error;
      });
      if (done) await finishReprocessRun(sql, reprocessRunId);
      const { seen, deliveries, changed, applied } = (await findReprocessRun(sql, reprocessRunId)) ?? run;
      if (done) logger.info({ reprocessRunId, seen, changed, applied, msg: 'reprocess run finished' });
      return { seen, deliveries, changed, applied, done };
    },
  };
}
