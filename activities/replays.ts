import { ApplicationFailure } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { SecretBox } from '../src/config/secret-box.ts';
import { appendEventFacts } from '../src/db/events.ts';
import type { AppendedFacts } from '../src/db/events.ts';
import type { NewCommission } from '../src/db/payments.ts';
import type { Stage } from '../src/db/rehearsal.ts';
import {
  advanceReplay,
  amendOutcome,
  findAppending,
  findNextDeliveries,
  findReading,
  findReplay,
  findUnapplied,
  finishReplay,
  markApplied,
  recordPlans,
} from '../src/db/replays.ts';
import type { DeliveryPlan, Replay, ReplayedDelivery } from '../src/db/replays.ts';
import { violatedConstraint } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { BindingId, DeliveryId, ReplayId } from '../src/domain/ids.ts';
import {
  compareReadings,
  isBetterOutcome,
  isSettled,
  ledgerChanges,
  readingOf,
} from '../src/domain/replay.ts';
import type { DeliveryOutcomeStatus, ReplayChange } from '../src/domain/replay.ts';
import type { ReplayProgress } from '../workflows/types.ts';
import { DeliveryRun } from './delivery-run.ts';
import { evaluateAndApply } from './evaluate.ts';

export interface ReplayActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Runs work on the service's database and takes it all back (`src/db/rehearsal.ts`). */
  readonly rehearse: <T>(work: (stage: Stage) => Promise<T>) => Promise<T>;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

/** Deliveries of one page: what they change is locked while they are rehearsed. */
const PAGE = 20;
/** A dry run rehearses a page behind this many of the latest deliveries that would append something. */
const CARRIED = 50;

export interface ReplayActivities {
  replayPage(replayId: string): Promise<ReplayProgress>;
}

interface Replayed {
  readonly changes: readonly ReplayChange[];
  readonly commissions: readonly NewCommission[];
  readonly bindings: readonly BindingId[];
}

function nothingBut(...changes: ReplayChange[]): Replayed {
  return { changes, commissions: [], bindings: [] };
}

function statusChange(
  stored: { processingStatus: string },
  today: DeliveryOutcomeStatus,
  reason: string | null,
): ReplayChange {
  return {
    what: 'status',
    stored: stored.processingStatus,
    today: reason === null ? today : `${today}: ${reason}`,
    action: isBetterOutcome(stored.processingStatus, today) ? 'append' : 'keep',
  };
}

/** Facts in the order in which a person reads them. */
const FACTS = [
  'event',
  'payment',
  'adjustment',
  'users',
  'userKeys',
  'userLinks',
  'aliases',
  'transfers',
] as const satisfies readonly (keyof AppendedFacts)[];

function factChanges(appended: AppendedFacts, event: string): ReplayChange[] {
  return FACTS.filter((what) => appended[what] > 0).map((what) => ({
    what,
    stored: null,
    today: what === 'event' ? event : `${appended[what]} more`,
    action: 'append',
  }));
}

/**
 * Runs one stored delivery again through today's code and appends what is missing: facts, then what the evaluations of
 * its payments find. Nothing that is stored is edited. Safe to run twice; the second time finds nothing to do.
 */
async function replayDelivery(sql: Sql, secretBox: SecretBox, deliveryId: DeliveryId): Promise<Replayed> {
  const run = new DeliveryRun(sql, deliveryId);
  const stored = await run.stored();
  if (!(await run.isWhole()) || !(await run.isProved(secretBox))) {
    const today = 'the stored request does not match its proof: it counts for nothing';
    return nothingBut({ what: 'refused', stored: null, today, action: 'keep' });
  }

  const parsed = await run.parsed();
  const before = await findReading(sql, deliveryId);
  if (parsed.outcome === 'failed' || parsed.event === null) {
    const [status, reason] =
      parsed.outcome === 'event' ? ['failed' as const, null] : [parsed.outcome, parsed.reason];
    if (status === stored.processingStatus) return nothingBut();
    const change = statusChange(stored, status, reason);
    if (change.action === 'append')
      await amendOutcome(sql, deliveryId, { status, reason, sourceEventId: null });
    return nothingBut(change);
  }

  const { event, environment } = await run.event();
  const reading = readingOf(event, environment);
  const difference = before === undefined ? null : compareReadings(before, reading);
  if (difference !== null && !difference.mayAppend) return nothingBut(...difference.changes);

  const { appId, eventId, provider: source, receivedAt } = stored;
  const appended = await appendEventFacts(sql, {
    deliveryId,
    eventId,
    appId,
    source,
    environment,
    receivedAt,
    event,
  });
  const changes: ReplayChange[] = [...(difference?.changes ?? [])];
  const commissions: NewCommission[] = [];
  const bindings: BindingId[] = [];
  if (appended !== null) {
    changes.push(...factChanges(appended, `${reading.kind}, ${environment}`));
    if (event.transfer !== null) bindings.push(...(await bindTransfers(sql, appId, { eventId })));
    for (const payment of await run.payments()) {
      if (isSettled(payment, evaluatePayment(payment))) continue;
      const applied = await evaluateAndApply(sql, payment, null);
      commissions.push(...applied.commissions);
      // A payment that this replay appended had no cause before.
      const isNew = appended.payment > 0 && payment.eventId === eventId;
      changes.push(...ledgerChanges(applied.evaluation, isNew ? null : payment.likelyCause));
    }
  }

  const ignoredReason = parsed.outcome === 'ignored' ? parsed.reason : null;
  const status = appended === null ? 'duplicate' : ignoredReason === null ? 'processed' : 'ignored';
  const raised = isBetterOutcome(stored.processingStatus, status);
  if (status !== stored.processingStatus) changes.push(statusChange(stored, status, ignoredReason));
  if (raised || commissions.length > 0) {
    await amendOutcome(sql, deliveryId, {
      ...(raised
        ? { status, reason: ignoredReason }
        : { status: stored.processingStatus, reason: stored.lastError }),
      sourceEventId: event.sourceEventId,
    });
  }
  return { changes, commissions, bindings };
}

/** The activities of the replay workflow. */
export function createReplayActivities(deps: ReplayActivityDeps): ReplayActivities {
  const { sql, secretBox, logger, rehearse, onCommissions, onBindings } = deps;

  /** Rehearses a page, delivery after delivery, each on top of those before it. Answers those that differ. */
  async function plan(replay: Replay, page: readonly ReplayedDelivery[]): Promise<DeliveryPlan[]> {
    // A real replay has applied the earlier pages; a dry run has to play them once more.
    const carried = replay.dryRun ? await findAppending(sql, replay.id, CARRIED) : [];
    return await rehearse(async (stage) => {
      const rehearsed = async (deliveryId: DeliveryId): Promise<readonly ReplayChange[]> => {
        try {
          return (await stage.part(() => replayDelivery(stage.sql, secretBox, deliveryId))).changes;
        } catch (error) {
          const constraint = violatedConstraint(error);
          if (constraint === undefined) throw error;
          return [
            {
              what: 'refused',
              stored: null,
              today: `the database refuses it: ${constraint}`,
              action: 'keep',
            },
          ];
        }
      };
      for (const deliveryId of carried) await rehearsed(deliveryId);
      const plans: DeliveryPlan[] = [];
      for (const delivery of page) {
        const changes = await rehearsed(delivery.deliveryId);
        if (changes.length > 0) plans.push({ ...delivery, changes });
      }
      return plans;
    });
  }

  return {
    /**
     * One page of a replay: rehearses it, writes down what differs, and then, unless it is a dry run, applies it. What
     * was written down stays, so a page that died in between is told whole.
     */
    replayPage: async (id) => {
      const replayId = id as ReplayId;
      const replay = await findReplay(sql, replayId);
      if (replay === undefined) {
        throw ApplicationFailure.nonRetryable(`no replay ${replayId} in this database`, 'UnknownReplay');
      }
      const page = await findNextDeliveries(sql, replayId, PAGE);
      if (page.length > 0) {
        await recordPlans(sql, replay, await plan(replay, page));
        const unapplied = replay.dryRun
          ? []
          : await findUnapplied(
              sql,
              replayId,
              page.map((d) => d.deliveryId),
            );
        for (const deliveryId of unapplied) {
          const { commissions, bindings } = await replayDelivery(sql, secretBox, deliveryId);
          onCommissions(commissions);
          onBindings(bindings);
          await markApplied(sql, replayId, deliveryId);
          logger.info({ replayId, deliveryId, commissions: commissions.length, msg: 'delivery replayed' });
        }
        await advanceReplay(sql, replay, page);
      } else {
        await finishReplay(sql, replayId);
      }
      const after = (await findReplay(sql, replayId)) ?? replay;
      const { seen, deliveries, changed, applied } = after;
      if (page.length === 0) logger.info({ replayId, seen, changed, applied, msg: 'replay finished' });
      return { seen, deliveries, changed, applied, done: page.length === 0 };
    },
  };
}
