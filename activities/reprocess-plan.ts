import { SecretUnreadable } from '../src/config/secret-box.ts';
import { findDependencies } from '../src/db/reprocess-deliveries.ts';
import type { ReprocessRun } from '../src/db/reprocess.ts';
import type { DeliveryPlan, NextDelivery } from '../src/db/reprocess-deliveries.ts';
import { isContentFault, violatedConstraint } from '../src/db/errors.ts';
import type { DryRun } from '../src/db/with-rollback.ts';
import type { DeliveryId } from '../src/domain/ids.ts';
import { appendsNoOtherMoney, appendsTheSame } from '../src/domain/reprocess.ts';
import type { ReprocessChange } from '../src/domain/reprocess.ts';
import { throwIfCancelled } from './cancellation.ts';
import { DeliveryContext, UnknownProvider } from './delivery-context.ts';
import { causeForFounder } from './failures.ts';
import { namesOf, reprocessDelivery } from './reprocess-delivery.ts';
import type { ReprocessDeliveryDeps } from './reprocess-delivery.ts';

export interface PlanDeps extends ReprocessDeliveryDeps {
  /** Runs work on the service's database and rolls it back (`src/db/with-rollback.ts`). */
  readonly withRollback: <T>(work: (dryRun: DryRun) => Promise<T>) => Promise<T>;
}

/** Limits the dry run of a page: the rows that it changes are locked until its end. */
const DRY_RUN_MS = 250;
/** Earlier deliveries that a dry run processes before a delivery that depends on them. Their payments are locked, too. */
const DEPENDENCIES_LIMIT = 50;

/** Returns why a delivery can never be reprocessed; undefined for a failure that a retry may avoid. */
export function refusalOf(error: unknown): string | undefined {
  const constraint = violatedConstraint(error);
  if (constraint !== undefined || isContentFault(error)) {
    return `the database rejects it: ${constraint || causeForFounder(error)}`;
  }
  return error instanceof SecretUnreadable || error instanceof UnknownProvider ? error.message : undefined;
}

/** Returns the failure of a run with the delivery that it happened at. */
export function failedAt(deliveryId: DeliveryId, error: unknown): Error {
  return new Error(`delivery ${deliveryId}: ${causeForFounder(error)}`, { cause: error });
}

/** Why the plan for a delivery is not applied although the dry run showed one. */
const PLAN_CHANGED = 'What it would append has changed since the dry run. Start a new dry run.';

/** Undoes a plan that differs from what the dry run showed, so that the next deliveries are planned without it. */
class PlanChanged extends Error {
  readonly changes: readonly ReprocessChange[];

  constructor(changes: readonly ReprocessChange[]) {
    super(PLAN_CHANGED);
    this.changes = changes;
  }
}

/**
 * Runs one delivery inside the dry run, on top of the deliveries before it, and returns its changes. Throws `PlanChanged`
 * for others than `shown`, unless that is null.
 */
async function dryRunDelivery(
  deps: ReprocessDeliveryDeps,
  { sql: dryRunSql, savepoint }: DryRun,
  run: ReprocessRun,
  context: DeliveryContext,
  shown: readonly ReprocessChange[] | null = null,
): Promise<readonly ReprocessChange[]> {
  if (!(await context.hasBody())) return [];
  try {
    return await savepoint(async () => {
      const { changes } = await reprocessDelivery(dryRunSql, deps, context, run.id);
      if (shown !== null && !appendsTheSame(shown, changes)) throw new PlanChanged(changes);
      return changes;
    });
  } catch (error) {
    if (error instanceof PlanChanged) throw error;
    const today = refusalOf(error);
    if (today === undefined) throw error;
    return [{ what: 'refused', stored: null, today, action: 'keep' }];
  }
}

const NOT_REFUSED = { refusal: null, moneyLeft: null } as const;

/** The change that stands for a plan of which nothing is left. */
const NOTHING_LEFT = { what: 'nothing', stored: null, today: null, action: 'keep' } as const;

function moneyLeftOf(
  changes: readonly ReprocessChange[],
  shown: readonly ReprocessChange[],
): DeliveryPlan['moneyLeft'] {
  if (appendsNoOtherMoney(changes, [])) return 'none';
  return appendsNoOtherMoney(changes, shown) ? 'part' : 'other';
}

/** Runs one delivery for a run that applies a dry run. Returns its changes, and why they are not applied. */
async function planShown(
  work: () => Promise<readonly ReprocessChange[]>,
  shown: readonly ReprocessChange[],
): Promise<Pick<DeliveryPlan, 'changes' | 'refusal' | 'moneyLeft'>> {
  const planOf = (changes: readonly ReprocessChange[]) => ({
    changes: changes.length === 0 ? [NOTHING_LEFT] : changes,
    refusal: PLAN_CHANGED,
    moneyLeft: moneyLeftOf(changes, shown),
  });
  try {
    const changes = await work();
    return appendsTheSame(shown, changes) ? { changes, ...NOT_REFUSED } : planOf(changes);
  } catch (error) {
    if (!(error instanceof PlanChanged)) throw error;
    return planOf(error.changes);
  }
}

/**
 * Runs a page and rolls it back, each delivery on top of those before it, until the time is up. Returns how many
 * deliveries it ran, and the plans of those that differ.
 */
export async function planPage(
  deps: PlanDeps,
  run: ReprocessRun,
  page: readonly NextDelivery[],
): Promise<{ planned: number; plans: DeliveryPlan[] }> {
  return await deps.withRollback(async (dryRun) => {
    const endsAt = performance.now() + DRY_RUN_MS;
    const ran = new Set<DeliveryId>();
    const plans: DeliveryPlan[] = [];
    let planned = 0;
    const planOne = async ({ shown, ...delivery }: NextDelivery): Promise<void> => {
      const context = new DeliveryContext(dryRun.sql, deps.secretBox, delivery.deliveryId);
      const names = (await context.hasBody()) ? await namesOf(context) : { provides: [], requires: [] };
      // A real run has applied the earlier pages; a dry run has to process its dependencies again.
      const dependencies = run.dryRun
        ? await findDependencies(dryRun.sql, run.id, delivery, names.requires, DEPENDENCIES_LIMIT)
        : [];
      for (const deliveryId of dependencies) {
        if (ran.has(deliveryId)) continue;
        await dryRunDelivery(deps, dryRun, run, new DeliveryContext(dryRun.sql, deps.secretBox, deliveryId));
        ran.add(deliveryId);
      }
      const work = async () => await dryRunDelivery(deps, dryRun, run, context, shown);
      const plan = shown === null ? { changes: await work(), ...NOT_REFUSED } : await planShown(work, shown);
      ran.add(delivery.deliveryId);
      if (plan.changes.length > 0) plans.push({ ...delivery, ...plan, names });
      planned += 1;
    };
    for (const delivery of page) {
      throwIfCancelled();
      if (planned > 0 && performance.now() > endsAt) break;
      await planOne(delivery).catch((error: unknown) => {
        throw failedAt(delivery.deliveryId, error);
      });
    }
    return { planned, plans };
  });
}
