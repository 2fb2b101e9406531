import type { Logger } from 'pino';
import { SecretUnreadable } from '../src/config/secret-box.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import { inSpan } from '../src/config/tracing.ts';
import { encryptBody, finishDelivery, loadDelivery, markDeliveryProcessing } from '../src/db/deliveries.ts';
import type { StoredDelivery } from '../src/db/deliveries.ts';
import { addErasedReferences, identifierHasher } from '../src/db/erased-identifiers.ts';
import { recordEventFacts } from '../src/db/events.ts';
import type { RecordedFacts } from '../src/db/events.ts';
import type { EventFacts } from '../src/db/event-details.ts';
import { isContentFault } from '../src/db/errors.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import type { CommissionId, DeliveryId } from '../src/domain/ids.ts';
import { identifiersOf } from '../src/domain/erasure.ts';
import type { DeliveryOutcome, DeliveryStep } from '../src/domain/delivery.ts';
import type { EvaluationLimits } from '../src/domain/evaluation.ts';
import { throwIfCancelled } from './cancellation.ts';
import { DeliveryContext } from './delivery-context.ts';
import { evaluateAndApply, evaluateEach, newBindings } from './evaluate.ts';
import { causeForFounder } from './failures.ts';
import { parseId } from './parse-id.ts';
import type { WorkEvents } from './work-events.ts';

export interface DeliveryActivityDeps extends Pick<WorkEvents, 'onOutcome' | 'onCommissions' | 'onBindings'> {
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Returns a delivery that this process has just stored, at the first call only. The rows are read if it is absent. */
  readonly takeStored?: (deliveryId: DeliveryId) => StoredDelivery | undefined;
  readonly observe?: DeliveryObserver | undefined;
}

/** Receives what happens to deliveries, for the metrics. `provider` is `unknown` when the row could not be read. */
export interface DeliveryObserver {
  /** A step has ended; `ok` is false when it failed and will be retried. */
  readonly step: (measured: {
    readonly provider: string;
    readonly step: DeliveryStep;
    readonly ok: boolean;
    readonly seconds: number;
  }) => void;
  /** A delivery has its outcome; `seconds` since its receipt. */
  readonly outcome: (measured: {
    readonly provider: string;
    readonly outcome: 'earned' | 'processed' | 'duplicate';
    readonly seconds: number;
  }) => void;
}

type Step<T extends DeliveryOutcome | null> = (
  deps: DeliveryActivityDeps,
  context: DeliveryContext,
) => Promise<T>;

interface Steps extends Readonly<Record<DeliveryStep, Step<DeliveryOutcome | null>>> {
  /** The last step always has an outcome. */
  readonly writeCommission: Step<DeliveryOutcome>;
}

/** Returns the stored outcome, or null when there is none yet. A step that runs again after the last commit ends here. */
function storedOutcome(delivery: StoredDelivery): DeliveryOutcome | null {
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

/** An erasure may come between two attempts, but names a person only once. */
const MOST_ERASURES = 20;

/**
 * Commits the facts of a delivery. Identifiers of erased persons are replaced by their pseudonyms: the statement records
 * nothing while it finds one.
 */
async function recordFacts(
  { sql, secretBox }: DeliveryActivityDeps,
  context: DeliveryContext,
): Promise<RecordedFacts & { readonly facts: EventFacts }> {
  for (let attempt = 0; attempt < MOST_ERASURES; attempt += 1) {
    const facts = await context.facts();
    const { appId, event } = facts;
    const { users, keys } = identifiersOf(event);
    const hash = users.length + keys.length === 0 ? null : await identifierHasher(sql, secretBox);
    const hashesOf = (identifiers: readonly string[]) =>
      hash === null ? [] : identifiers.map((identifier) => hash(appId, identifier));
    const recorded = await recordEventFacts(sql, facts, { users: hashesOf(users), keys: hashesOf(keys) });
    if (!recorded.namesErased) {
      // Later refunds of the payment name it, not the person.
      if (context.isPseudonymized && event.payment !== null) await addErasedReferences(sql, secretBox, facts);
      return { ...recorded, facts };
    }
    // It was stored in clear by a statement that did not see the erasure, or from an export.
    await encryptBody(sql, secretBox, await context.stored());
    await context.pseudonymize();
  }
  throw new Error('the identifiers of a delivery were erased many times in a row');
}

/**
 * Returns why the stored request of a delivery is not proved; null if it is. Throws `SecretUnreadable` if this process lacks the key, and
 * another one may have it.
 */
async function findProofProblem(context: DeliveryContext): Promise<string | null> {
  try {
    if (await context.isProved()) return null;
  } catch (error) {
    if (error instanceof SecretUnreadable && error.isLost) return error.message;
    throw error;
  }
  return 'the stored request no longer matches its signature: the row was changed after it was accepted';
}

/**
 * The six steps, in the order of the specification. Each is safe to run twice. It returns the outcome when the delivery
 * ends with it, else null.
 */
const steps: Steps = {
  /**
   * Verifies the stored bytes under the secret version that accepted them, as of the time of receipt. On the fast path the process
   * that stored them still has them, so the row itself is verified when the step runs in another process, or again.
   */
  verify: async (deps, context) => {
    const delivery = await context.stored();
    const done = storedOutcome(delivery);
    if (done !== null) return done;
    const reason = await findProofProblem(context);
    if (reason === null) return null;
    return await finish(deps, delivery, { status: 'failed', reason, sourceEventId: null, eventCount: 0 });
  },

  /** Compares the bytes with their hash, like `verify`. They were stored before the workflow started. */
  storeRaw: async (deps, context) => {
    const delivery = await context.stored();
    if (await context.isWhole()) return null;
    return await finish(deps, delivery, {
      status: 'failed',
      reason: 'the stored body does not have the SHA-256 that it was accepted with',
      sourceEventId: null,
      eventCount: 0,
    });
  },

  /** Parses the body. A body that can't be parsed never can: that is an outcome, not an error to retry. */
  normalize: async (deps, context) => {
    const delivery = await context.stored();
    const parsed = await context.parsed();
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

  /** Commits the event's facts, once per `(app, source, sourceEventId)`. */
  dedupe: async (deps, context) => {
    const delivery = await context.stored();
    const recorded = await recordFacts(deps, context).catch((error: unknown) => {
      // Nothing is stored of an event whose facts the database refuses, and it would refuse them for ever.
      if (isContentFault(error)) return { refusal: causeForFounder(error) };
      throw error;
    });
    if ('refusal' in recorded) {
      return await finish(deps, delivery, {
        status: 'failed',
        reason: `the database refuses what the event states: ${recorded.refusal}`,
        sourceEventId: null,
        eventCount: 0,
      });
    }
    const { facts, isDuplicate, paymentId } = recorded;
    context.recordedPayment = paymentId;
    if (!isDuplicate) return null;
    const { sourceEventId } = facts.event;
    return await finish(deps, delivery, { status: 'duplicate', reason: null, sourceEventId, eventCount: 0 });
  },

  /**
   * Finds what the facts are to be attributed to: binds transferred users and those who signed in, and reads the affected
   * payments, after the commit of the facts. The evaluation in `writeCommission` decides to whom each payment is attributed.
   */
  attribute: async (deps, context) => {
    const { appId, eventId } = await context.stored();
    const { event } = await context.event();
    if (event.transfer !== null) deps.onBindings(await bindTransfers(deps.sql, appId, { eventId }), appId);
    deps.onBindings(await context.bindSignedInUsers(), appId);
    await context.payments();
    await context.linkedPayments();
    return null;
  },

  /** Appends the missing ledger entries of each payment, and the delivery's outcome with the last one. */
  writeCommission: async (deps, context) => {
    const delivery = await context.stored();
    const done = storedOutcome(delivery);
    if (done !== null) return done;
    const { event } = await context.event();
    const { sourceEventId } = event;
    const ignoredReason = await context.ignoredReason();
    const { hasBound } = await evaluateEach(deps, await context.linkedPayments());
    const payments = hasBound ? await context.paymentsNow() : await context.payments();
    const isFurtherReport =
      event.payment !== null && payments.every(({ eventId }) => eventId !== delivery.eventId);
    const own = { deliveryId: delivery.id, eventId: delivery.eventId, sourceEventId, isFurtherReport };
    let outcome: { readonly commissionId: CommissionId | null } | null = null;
    for (const [index, payment] of payments.entries()) {
      const isLast = index === payments.length - 1 && ignoredReason === null;
      const applied = await evaluateAndApply(deps.sql, payment, isLast ? own : null, {
        limits: deps.limits,
      });
      deps.onCommissions(applied.commissions);
      deps.onBindings(newBindings(applied), payment.appId);
      outcome = applied.delivery;
    }
    if (payments.length === 0 || ignoredReason !== null) {
      const status = ignoredReason === null ? 'processed' : 'ignored';
      return await finish(deps, delivery, { status, reason: ignoredReason, sourceEventId, eventCount: 1 });
    }
    if (outcome !== null)
      return { status: 'done', eventId: delivery.eventId, commissionId: outcome.commissionId };
    // A concurrent run of this delivery came first, or the response to this one's commit was lost: read the row.
    const after = await loadDelivery(deps.sql, deps.secretBox, delivery.id);
    return (
      (after && storedOutcome(after)) ?? { status: 'done', eventId: delivery.eventId, commissionId: null }
    );
  },
};

/** The steps, and all of them in one. Each returns the outcome when the delivery ends with it, else null. */
export type DeliveryActivities = {
  readonly [S in DeliveryStep]: (deliveryId: string) => ReturnType<Steps[S]>;
} & {
  /** Runs all six steps. */
  readonly processDelivery: (deliveryId: string) => Promise<DeliveryOutcome>;
};

/** The provider of a delivery whose row could not be read. */
const UNKNOWN = 'unknown';

/** The activities of the delivery workflow. */
export function createDeliveryActivities(deps: DeliveryActivityDeps): DeliveryActivities {
  const report = (context: DeliveryContext, outcome: DeliveryOutcome): DeliveryOutcome => {
    const { deliveryId, known } = context;
    deps.logger.info({ deliveryId, ...outcome, msg: 'delivery finished' });
    deps.observe?.outcome({
      provider: known?.provider ?? UNKNOWN,
      outcome:
        outcome.status === 'duplicate' ? 'duplicate' : outcome.commissionId === null ? 'processed' : 'earned',
      seconds: Math.max(0, Date.now() - (known?.receivedAt ?? Date.now())) / 1_000,
    });
    deps.onOutcome(deliveryId, outcome);
    return outcome;
  };

  /** Runs one step and measures it. */
  const runStep = async <T extends DeliveryOutcome | null>(
    step: DeliveryStep,
    run: Step<T>,
    context: DeliveryContext,
  ): Promise<T | DeliveryOutcome> => {
    const startedAt = performance.now();
    let ok = false;
    try {
      const outcome = await inSpan(
        step,
        {},
        async () => (await context.outcomeWithoutBody(storedOutcome)) ?? (await run(deps, context)),
      );
      ok = true;
      return outcome;
    } finally {
      const seconds = (performance.now() - startedAt) / 1_000;
      deps.observe?.step({ provider: context.known?.provider ?? UNKNOWN, step, ok, seconds });
    }
  };

  /** Runs one step. A failure is also stored on the row, where the diagnostics show it to the founder. */
  const alone =
    <T extends DeliveryOutcome | null>(step: DeliveryStep, run: Step<T>) =>
    async (id: string): Promise<T | DeliveryOutcome> => {
      const deliveryId = parseId('delivery', id);
      try {
        const context = new DeliveryContext(deps.sql, deps.secretBox, deliveryId);
        const outcome = await runStep(step, run, context);
        return outcome === null ? outcome : report(context, outcome);
      } catch (error) {
        deps.logger.warn({
          deliveryId,
          step,
          err: error,
          msg: 'a delivery step failed and will be retried',
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
      const context = new DeliveryContext(
        deps.sql,
        deps.secretBox,
        deliveryId,
        deps.takeStored?.(deliveryId),
      );
      const next = async <T extends DeliveryOutcome | null>(step: DeliveryStep, run: Step<T>) => {
        throwIfCancelled();
        return await runStep(step, run, context);
      };
      const outcome =
        (await next('verify', steps.verify)) ??
        (await next('storeRaw', steps.storeRaw)) ??
        (await next('normalize', steps.normalize)) ??
        (await next('dedupe', steps.dedupe)) ??
        (await next('attribute', steps.attribute)) ??
        (await next('writeCommission', steps.writeCommission));
      return report(context, outcome);
    },
    verify: alone('verify', steps.verify),
    storeRaw: alone('storeRaw', steps.storeRaw),
    normalize: alone('normalize', steps.normalize),
    dedupe: alone('dedupe', steps.dedupe),
    attribute: alone('attribute', steps.attribute),
    writeCommission: alone('writeCommission', steps.writeCommission),
  };
}
