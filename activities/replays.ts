import { ApplicationFailure } from '@temporalio/activity';
import type { Logger } from 'pino';
import { loggedError } from '../src/config/logger.ts';
import { SecretUnreadable } from '../src/config/secret-box.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import type { NewCommission } from '../src/db/payments.ts';
import type { Stage } from '../src/db/rehearsal.ts';
import {
  advanceReplay,
  findFoundations,
  findNextDeliveries,
  findPlanned,
  findReplay,
  finishReplay,
  markApplied,
  noteReplayError,
  recordPlans,
} from '../src/db/replays.ts';
import type { DeliveryPlan, Replay, ReplayedDelivery } from '../src/db/replays.ts';
import { isConnectionFailure, violatedConstraint } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import type { BindingId, DeliveryId, ReplayId } from '../src/domain/ids.ts';
import type { ReplayChange } from '../src/domain/replay.ts';
import type { ReplayProgress } from '../workflows/types.ts';
import { DeliveryRun, UnknownProvider } from './delivery-run.ts';
import { causeForFounder } from './failures.ts';
import { namesOf, replayDelivery } from './replay-delivery.ts';

export interface ReplayActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Runs work on the service's database and takes it all back (`src/db/rehearsal.ts`). */
  readonly rehearse: <T>(work: (stage: Stage) => Promise<T>) => Promise<T>;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

/** Deliveries of one page, and how long their rehearsal may go on: what it changes is locked until its end. */
const PAGE = 20;
const REHEARSAL_MS = 250;
/** A dry run plays at most so many earlier deliveries on which one builds: their payments are locked as long. */
const FOUNDATIONS_LIMIT = 50;

export interface ReplayActivities {
  replayPage(replayId: string): Promise<ReplayProgress>;
}

/** Why a delivery can't be replayed, whatever happens next; undefined for a failure that another try may not meet. */
function refusalOf(error: unknown): string | undefined {
  const constraint = violatedConstraint(error);
  if (constraint !== undefined) {
    return `the database refuses it: ${constraint === '' ? loggedError(error).message : constraint}`;
  }
  return error instanceof SecretUnreadable || error instanceof UnknownProvider ? error.message : undefined;
}

/** The failure of a replay, with the delivery at which it happened. */
function failedAt(deliveryId: DeliveryId, error: unknown): Error {
  return new Error(`delivery ${deliveryId}: ${causeForFounder(error)}`, { cause: error });
}

/** The activities of the replay workflow. */
export function createReplayActivities(deps: ReplayActivityDeps): ReplayActivities {
  const { sql, secretBox, logger, rehearse, onCommissions, onBindings } = deps;

  /** Rehearses one delivery on top of what the rehearsal has played. */
  async function rehearseDelivery(
    { sql: staged, part }: Stage,
    replay: Replay,
    run: DeliveryRun,
  ): Promise<readonly ReplayChange[]> {
    try {
      return (await part(async () => await replayDelivery(staged, secretBox, run, replay.id))).changes;
    } catch (error) {
      const today = refusalOf(error);
      if (today === undefined) throw error;
      return [{ what: 'refused', stored: null, today, action: 'keep' }];
    }
  }

  /**
   * Rehearses a page, delivery after delivery, each on top of those before it, as far as its time goes. Answers how many
   * that were, and the plans of those that differ.
   */
  async function plan(
    replay: Replay,
    page: readonly ReplayedDelivery[],
  ): Promise<{ rehearsed: number; plans: DeliveryPlan[] }> {
    return await rehearse(async (stage) => {
      const endsAt = performance.now() + REHEARSAL_MS;
      const played = new Set<DeliveryId>();
      const plans: DeliveryPlan[] = [];
      let rehearsed = 0;
      const play = async (delivery: ReplayedDelivery): Promise<void> => {
        const run = new DeliveryRun(stage.sql, delivery.deliveryId);
        const names = await namesOf(run);
        // A real replay has applied the earlier pages; a dry run has to play what it builds on once more.
        const foundations = replay.dryRun
          ? await findFoundations(stage.sql, replay.id, delivery, names.asks, FOUNDATIONS_LIMIT)
          : [];
        for (const deliveryId of foundations) {
          if (played.has(deliveryId)) continue;
          await rehearseDelivery(stage, replay, new DeliveryRun(stage.sql, deliveryId));
          played.add(deliveryId);
        }
        const changes = await rehearseDelivery(stage, replay, run);
        played.add(delivery.deliveryId);
        if (changes.length > 0) plans.push({ ...delivery, changes, names });
        rehearsed += 1;
      };
      for (const delivery of page) {
        if (rehearsed > 0 && performance.now() > endsAt) break;
        await play(delivery).catch((error: unknown) => {
          throw failedAt(delivery.deliveryId, error);
        });
      }
      return { rehearsed, plans };
    });
  }

  /** Carries out the plan of one delivery. One that was cancelled gives up where another would try for ever. */
  async function apply({ id: replayId, isCancelled }: Replay, deliveryId: DeliveryId): Promise<void> {
    try {
      const run = new DeliveryRun(sql, deliveryId);
      const { commissions, bindings } = await replayDelivery(sql, secretBox, run, replayId);
      onCommissions(commissions);
      onBindings(bindings);
      await markApplied(sql, replayId, deliveryId, null);
      logger.info({ replayId, deliveryId, commissions: commissions.length, msg: 'delivery replayed' });
    } catch (error) {
      const isHopeless = isCancelled && !isConnectionFailure(error);
      const refusal = refusalOf(error) ?? (isHopeless ? causeForFounder(error) : undefined);
      if (refusal === undefined) throw failedAt(deliveryId, error);
      await markApplied(sql, replayId, deliveryId, refusal);
      logger.warn({ replayId, deliveryId, refusal, msg: 'delivery not replayed' });
    }
  }

  /**
   * Rehearses the next deliveries, writes their plans down and, unless it is a dry run, carries them out. A replay that was
   * cancelled carries out what it had written down: no delivery is left half done.
   */
  async function replayNext(replay: Replay): Promise<'on' | 'done'> {
    let page: readonly ReplayedDelivery[] = [];
    if (!replay.isCancelled) {
      const next = await findNextDeliveries(sql, replay, PAGE);
      if (next.length === 0) return 'done';
      const { rehearsed, plans } = await plan(replay, next);
      page = next.slice(0, rehearsed);
      await recordPlans(sql, replay, plans);
    }
    const planned = await findPlanned(sql, replay.id);
    for (const { deliveryId } of replay.dryRun ? [] : planned.filter(({ isOpen }) => isOpen)) {
      await apply(replay, deliveryId);
    }
    await advanceReplay(sql, replay, replay.isCancelled ? planned : page);
    return replay.isCancelled ? 'done' : 'on';
  }

  return {
    /**
     * One page of a replay. What was written down of it stays, so a page that died in between is told whole. Why it
     * failed is noted for who waits; then it is tried again.
     */
    replayPage: async (id) => {
      const replayId = id as ReplayId;
      const replay = await findReplay(sql, replayId);
      if (replay === undefined) {
        throw ApplicationFailure.nonRetryable(`no replay ${replayId} in this database`, 'UnknownReplay');
      }
      const result = await replayNext(replay).catch(async (error: unknown) => {
        await noteReplayError(sql, replayId, causeForFounder(error)).catch(() => {});
        throw error;
      });
      if (result === 'done') await finishReplay(sql, replayId);
      const { seen, deliveries, changed, applied } = (await findReplay(sql, replayId)) ?? replay;
      if (result === 'done') logger.info({ replayId, seen, changed, applied, msg: 'replay finished' });
      return { seen, deliveries, changed, applied, done: result === 'done' };
    },
  };
}
