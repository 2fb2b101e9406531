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
  findPlanned,
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
  /** Runs work on the service's database and takes it all back (`src/db/with-rollback.ts`). */
  readonly withRollback: <T>(work: (dryRun: DryRun) => Promise<T>) => Promise<T>;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

/** Deliveries of one page, and how long their dry run may go on: what it changes is locked until its end. */
const PAGE = 20;
const DRY_RUN_MS = 250;
/** A dry run plays at most so many earlier deliveries on which one builds: their payments are locked as long. */
const DEPENDENCIES_LIMIT = 50;

export interface ReprocessActivities {
  reprocessPage(reprocessRunId: string): Promise<ReprocessProgress>;
}

/** Why a delivery can't be reprocessed, whatever happens next; undefined for a failure that another try may not meet. */
function refusalOf(error: unknown): string | undefined {
  const constraint = violatedConstraint(error);
  if (constraint !== undefined) {
    return `the database refuses it: ${constraint === '' ? loggedError(error).message : constraint}`;
  }
  return error instanceof SecretUnreadable || error instanceof UnknownProvider ? error.message : undefined;
}

/** The failure of a run, with the delivery at which it happened. */
function failedAt(deliveryId: DeliveryId, error: unknown): Error {
  return new Error(`delivery ${deliveryId}: ${causeForFounder(error)}`, { cause: error });
}

/** The activities of the reprocess workflow. */
export function createReprocessActivities(deps: ReprocessActivityDeps): ReprocessActivities {
  const { sql, secretBox, logger, withRollback, onCommissions, onBindings } = deps;

  /** Runs and rolls back one delivery on top of what the dry run has played. */
  async function dryRunDelivery(
    { sql: dryRunSql, part }: DryRun,
    run: ReprocessRun,
    context: DeliveryContext,
  ): Promise<readonly ReprocessChange[]> {
    try {
      return (await part(async () => await reprocessDelivery(dryRunSql, secretBox, context, run.id))).changes;
    } catch (error) {
      const today = refusalOf(error);
      if (today === undefined) throw error;
      return [{ what: 'refused', stored: null, today, action: 'keep' }];
    }
  }

  /**
   * Runs and rolls back a page, delivery after delivery, each on top of those before it, as far as its time goes. Answers how many
   * that were, and the plans of those that differ.
   */
  async function plan(
    run: ReprocessRun,
    page: readonly ReprocessedDelivery[],
  ): Promise<{ planned: number; plans: DeliveryPlan[] }> {
    return await withRollback(async (dryRun) => {
      const endsAt = performance.now() + DRY_RUN_MS;
      const played = new Set<DeliveryId>();
      const plans: DeliveryPlan[] = [];
      let planned = 0;
      const play = async (delivery: ReprocessedDelivery): Promise<void> => {
        const context = new DeliveryContext(dryRun.sql, delivery.deliveryId);
        const names = await namesOf(context);
        // A real reprocess has applied the earlier pages; a dry run has to play what it builds on once more.
        const dependencies = run.dryRun
          ? await findDependencies(dryRun.sql, run.id, delivery, names.requires, DEPENDENCIES_LIMIT)
          : [];
        for (const deliveryId of dependencies) {
          if (played.has(deliveryId)) continue;
          await dryRunDelivery(dryRun, run, new DeliveryContext(dryRun.sql, deliveryId));
          played.add(deliveryId);
        }
        const changes = await dryRunDelivery(dryRun, run, context);
        played.add(delivery.deliveryId);
        if (changes.length > 0) plans.push({ ...delivery, changes, names });
        planned += 1;
      };
      for (const delivery of page) {
        if (planned > 0 && performance.now() > endsAt) break;
        await play(delivery).catch((error: unknown) => {
          throw failedAt(delivery.deliveryId, error);
        });
      }
      return { planned, plans };
    });
  }

  /** Carries out the plan of one delivery. One that was cancelled gives up where another would try for ever. */
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
      const isHopeless = isCancelled && !isConnectionFailure(error);
      const refusal = refusalOf(error) ?? (isHopeless ? causeForFounder(error) : undefined);
      if (refusal === undefined) throw failedAt(deliveryId, error);
      await markApplied(sql, reprocessRunId, deliveryId, refusal);
      logger.warn({ reprocessRunId, deliveryId, refusal, msg: 'delivery not reprocessed' });
    }
  }

  /**
   * Runs and rolls back the next deliveries, writes their plans down and, unless it is a dry run, carries them out. A reprocess that was
   * cancelled carries out what it had written down: no delivery is left half done.
   */
  async function reprocessNext(run: ReprocessRun): Promise<'on' | 'done'> {
    let page: readonly ReprocessedDelivery[] = [];
    if (!run.isCancelled) {
      const next = await findNextDeliveries(sql, run, PAGE);
      if (next.length === 0) return 'done';
      const { planned, plans } = await plan(run, next);
      page = next.slice(0, planned);
      await recordPlans(sql, run, plans);
    }
    const pending = await findPlanned(sql, run.id);
    for (const { deliveryId } of run.dryRun ? [] : pending.filter(({ isOpen }) => isOpen)) {
      await apply(run, deliveryId);
    }
    await advanceReprocessRun(sql, run, run.isCancelled ? pending : page);
    return run.isCancelled ? 'done' : 'on';
  }

  return {
    /**
     * One page of a run. What was written down of it stays, so a page that died in between is told whole. Why it
     * failed is noted for who waits; then it is tried again.
     */
    reprocessPage: async (id) => {
      const reprocessRunId = parseId('reprocessRun', id);
      const run = await findReprocessRun(sql, reprocessRunId);
      if (run === undefined) {
        throw ApplicationFailure.nonRetryable(
          `no reprocess ${reprocessRunId} in this database`,
          'UnknownReprocessRun',
        );
      }
      const result = await reprocessNext(run).catch(async (error: unknown) => {
        await recordReprocessError(sql, reprocessRunId, causeForFounder(error)).catch(() => {});
        throw error;
      });
      if (result === 'done') await finishReprocessRun(sql, reprocessRunId);
      const { seen, deliveries, changed, applied } = (await findReprocessRun(sql, reprocessRunId)) ?? run;
      if (result === 'done')
        logger.info({ reprocessRunId, seen, changed, applied, msg: 'reprocess finished' });
      return { seen, deliveries, changed, applied, done: result === 'done' };
    },
  };
}
