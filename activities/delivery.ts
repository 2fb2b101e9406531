import type { Logger } from 'pino';
import type { SecretBox } from '../src/config/secret-box.ts';
import { finishDelivery, loadDelivery, markDeliveryProcessing } from '../src/db/deliveries.ts';
import type { StoredDelivery } from '../src/db/deliveries.ts';
import { recordEventFacts } from '../src/db/events.ts';
import type { NewCommission } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import type { BindingId, CommissionId, DeliveryId } from '../src/domain/ids.ts';
import { DELIVERY_STEPS } from '../src/domain/delivery.ts';
import type { DeliveryOutcome, DeliveryStep } from '../src/domain/delivery.ts';
import { DeliveryContext } from './delivery-context.ts';
import { evaluateAndApply } from './evaluate.ts';
import { causeForFounder } from './failures.ts';
import { parseId } from './parse-id.ts';

export interface DeliveryActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Told of an outcome after its commit: whoever waits for the answer gets it from here. */
  readonly onOutcome: (deliveryId: DeliveryId, result: DeliveryOutcome) => void;
  /** Told of commissions after their commit: their hold timers are started from here. */
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  /** Told of bindings whose earlier payments have to be looked at. */
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

type Step = (deps: DeliveryActivityDeps, run: DeliveryContext) => Promise<DeliveryOutcome | null>;

/** An outcome that stands already: a step that runs again after the last commit has nothing left to do. */
function outcomeOf(delivery: StoredDelivery): DeliveryOutcome | null {
  switch (delivery.processingStatus) {
    case 'received':
    case 'processing':
      return null;
    case 'duplicate':
      return { status: 'duplicate' };
    case 'processed':
    case 'ignored':
    case 'failed':
    case 'rejected':
      return { status: 'done', eventId: delivery.eventId, commissionId: delivery.commissionId };
  }
}

async function finish(
  { sql }: DeliveryActivityDeps,
  delivery: StoredDelivery,
  outcome: Parameters<typeof finishDelivery>[2],
): Promise<DeliveryOutcome> {
  await finishDelivery(sql, delivery.id, outcome);
  if (outcome.status === 'duplicate') return { status: 'duplicate' };
  return { status: 'done', eventId: delivery.eventId, commissionId: null };
}

/**
 * The six steps, in the order of the specification. Each one is safe to run twice and answers a result when the
 * delivery ends with it, else null.
 */
const steps: Readonly<Record<DeliveryStep, Step>> = {
  /** Checks the stored bytes against the secret version that accepted them, as of the time of receipt. */
  verify: async (deps, run) => {
    const delivery = await run.stored();
    const done = outcomeOf(delivery);
    if (done !== null) return done;
    if (await run.isProved(deps.secretBox)) return null;
    return await finish(deps, delivery, {
      status: 'failed',
      reason: 'the stored request no longer matches its proof: the row was changed after it was accepted',
      sourceEventId: null,
      eventCount: 0,
    });
  },

  /** The bytes were stored before the workflow began; this reads them back and compares them with their hash. */
  storeRaw: async (deps, run) => {
    const delivery = await run.stored();
    if (await run.isWhole()) return null;
    return await finish(deps, delivery, {
      status: 'failed',
      reason: 'the stored body does not have the SHA-256 that it was accepted with',
      sourceEventId: null,
      eventCount: 0,
    });
  },

  /** Reads the body. What can't be read now can't be read later: that is an outcome, not an error. */
  normalize: async (deps, run) => {
    const delivery = await run.stored();
    const parsed = await run.parsed();
    if (parsed.outcome === 'failed') {
      return await finish(deps, delivery, {
        status: 'failed',
        reason: parsed.reason,
        sourceEventId: null,
        eventCount: 0,
      });
    }
    if (parsed.event === null) {
      const reason = parsed.outcome === 'ignored' ? parsed.reason : null;
      return await finish(deps, delivery, { status: 'ignored', reason, sourceEventId: null, eventCount: 0 });
    }
    return null;
  },

  /** Commits what the event tells, once per `(app, source, sourceEventId)`. */
  dedupe: async (deps, run) => {
    const delivery = await run.stored();
    const facts = await run.facts();
    if ((await recordEventFacts(deps.sql, facts)) === 'recorded') return null;
    const { sourceEventId } = facts.event;
    return await finish(deps, delivery, { status: 'duplicate', reason: null, sourceEventId, eventCount: 0 });
  },

  /** Finds the payments that this event says something of, and who is behind them, as of after the facts' commit. */
  attribute: async (deps, run) => {
    const { appId, eventId } = await run.stored();
    const { event } = await run.event();
    if (event.transfer !== null) deps.onBindings(await bindTransfers(deps.sql, appId, { eventId }));
    await run.payments();
    return null;
  },

  /** Appends what each payment's ledger lacks, and the delivery's outcome with the last of them. */
  writeCommission: async (deps, run) => {
    const delivery = await run.stored();
    const done = outcomeOf(delivery);
    if (done !== null) return done;
    const parsed = await run.parsed();
    const { event } = await run.event();
    const { sourceEventId } = event;
    const payments = await run.payments();
    const own = { deliveryId: delivery.id, eventId: delivery.eventId, sourceEventId };
    const ignoredReason = parsed.outcome === 'ignored' ? parsed.reason : null;
    let outcome: { readonly commissionId: CommissionId | null } | null = null;
    for (const [index, payment] of payments.entries()) {
      const isLast = index === payments.length - 1 && ignoredReason === null;
      const applied = await evaluateAndApply(deps.sql, payment, isLast ? own : null);
      deps.onCommissions(applied.commissions);
      outcome = applied.delivery;
    }
    if (payments.length === 0 || ignoredReason !== null) {
      const status = ignoredReason === null ? 'processed' : 'ignored';
      return await finish(deps, delivery, { status, reason: ignoredReason, sourceEventId, eventCount: 1 });
    }
    if (outcome !== null)
      return { status: 'done', eventId: delivery.eventId, commissionId: outcome.commissionId };
    // Another run of the same delivery came first, or this one did and was not told: the row knows.
    const after = await loadDelivery(deps.sql, delivery.id);
    return (after && outcomeOf(after)) ?? { status: 'done', eventId: delivery.eventId, commissionId: null };
  },
};

export type DeliveryActivities = Readonly<
  Record<DeliveryStep, (deliveryId: string) => Promise<DeliveryOutcome | null>>
> & {
  /** All six steps in one go. */
  readonly processDelivery: (deliveryId: string) => Promise<DeliveryOutcome>;
};

/** The activities of the delivery workflow. */
export function createDeliveryActivities(deps: DeliveryActivityDeps): DeliveryActivities {
  const settle = (deliveryId: DeliveryId, result: DeliveryOutcome): DeliveryOutcome => {
    deps.logger.info({ deliveryId, ...result, msg: 'delivery finished' });
    deps.onOutcome(deliveryId, result);
    return result;
  };

  /** One step on its own: what went wrong is kept on the row too, for the diagnostic that founders read. */
  const alone =
    (step: DeliveryStep) =>
    async (id: string): Promise<DeliveryOutcome | null> => {
      const deliveryId = parseId('delivery', id);
      try {
        const result = await steps[step](deps, new DeliveryContext(deps.sql, deliveryId));
        return result === null ? null : settle(deliveryId, result);
      } catch (error) {
        deps.logger.warn({
          deliveryId,
          step,
          err: error,
          msg: 'delivery step failed, it will be tried again',
        });
        await markDeliveryProcessing(deps.sql, deliveryId, `${step}: ${causeForFounder(error)}`).catch(
          () => {},
        );
        throw error;
      }
    };

  return {
    processDelivery: async (id) => {
      const deliveryId = parseId('delivery', id);
      const run = new DeliveryContext(deps.sql, deliveryId);
      for (const step of DELIVERY_STEPS) {
        const result = await steps[step](deps, run);
        if (result !== null) return settle(deliveryId, result);
      }
      throw new Error('the last step always has a result');
    },
    verify: alone('verify'),
    storeRaw: alone('storeRaw'),
    normalize: alone('normalize'),
    dedupe: alone('dedupe'),
    attribute: alone('attribute'),
    writeCommission: alone('writeCommission'),
  };
}
