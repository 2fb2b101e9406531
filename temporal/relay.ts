import type { Logger } from 'pino';
import { startBackgroundLoop } from '../src/lib/background-loop.ts';
import type { BackgroundLoop } from '../src/lib/background-loop.ts';
import { claimBindingsToHeal } from '../src/db/healing.ts';
import type { DeliveryKeys } from '../src/domain/delivery.ts';
import { claimUnfinishedDeliveries } from '../src/db/deliveries.ts';
import { findPaymentsToRecheck } from '../src/db/payments.ts';
import { findConvertiblePayments } from '../src/db/rates.ts';
import { claimErasures } from '../src/db/erasures.ts';
import { claimWebhookMessages } from '../src/db/webhook-attempts.ts';
import { claimEmails } from '../src/db/email-claims.ts';
import type { EmailKeys } from '../src/domain/email.ts';
import type { ClaimedMessage } from '../src/db/webhook-attempts.ts';
import { isDatabaseUnavailable } from '../src/db/errors.ts';
import { makeOverdue } from '../src/db/recovery.ts';
import { recordDuty } from '../src/db/duties.ts';
import { claimPayoutRuns } from '../src/db/payout-run-requests.ts';
import { claimReprocessRuns } from '../src/db/reprocess.ts';
import type { Sql } from '../src/db/sql.ts';
import type { AccountId, AppId, BindingId } from '../src/domain/ids.ts';
import { BACKGROUND_CONCURRENCY } from './worker.ts';
import type { RelayedStart } from './awaited-delivery.ts';
import type { TemporalWorkflowStarter } from './workflow-starter.ts';

/** Work without an outcome for this long has its workflow started again. */
const OVERDUE_MS = 30_000;
/** How long the relay waits before it looks for such work again. */
const PAUSE_MS = 5_000;
/** How often the relay records that no payment waits for a conversion. */
const NOTE_PAUSE_MS = 60_000;
const PAGE = 200;
/** Deliveries that one claim takes: few, so that none waits for its start until another process claims it again. */
const CLAIM = 50;
/** Heals that one claim takes: what was claimed is still run when the pass is over, and each may be waited for. */
const HEAL_CLAIM = 8;
/** Deliveries of the relay that run at once. They leave room for those that arrive now. */
export const RELAY_IN_FLIGHT = 8;
/** A pass over the deliveries ends after this, so that other stored work gets its turn. */
const PASS_MS = 5_000;

/** The pause between two looks at the outbox of messages, ms: nothing else starts their workflows. */
const WEBHOOK_PAUSE_MS = 1_000;
/** Starts of messages' workflows that are in flight at once. */
const WEBHOOK_STARTS = 4;

/** Heals of the relay that run at once: as many as a process has activities of background work. */
export const HEALS_IN_FLIGHT = BACKGROUND_CONCURRENCY;

/** Work that was claimed, and whether another claim may find more. */
interface Claimed<Work> {
  readonly work: readonly Work[];
  readonly hasMore: boolean;
}

/** Stored work of one kind without an outcome. */
interface Backlog<Work> {
  /** Claims overdue work, about `limit`. */
  readonly claim: (limit: number) => Promise<Claimed<Work>>;
  /** Starts one and waits a moment for its end. Never throws. */
  readonly run: (work: Work, signal?: AbortSignal) => Promise<RelayedStart>;
  readonly claimSize: number;
  readonly inFlight: number;
}

/** The result of a claim that takes at most `limit`: a full one may have left some. */
const claimedUpTo = <Work>(limit: number, work: readonly Work[]): Claimed<Work> => ({
  work,
  hasMore: work.length === limit,
});

/** Waits for all, and throws the first failure only then: nothing goes on beside the next round. */
async function allSettled<T>(running: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(running);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** Runs overdue work for at most `PASS_MS`, a few at once, and claims more only when it is needed. */
async function runOverdue<Work>(
  { claim, run, claimSize, inFlight }: Backlog<Work>,
  signal?: AbortSignal,
): Promise<{ count: number; more: boolean }> {
  const endsAt = performance.now() + PASS_MS;
  const claimed: Work[] = [];
  let count = 0;
  const pass = { more: true, isRefused: false, startedSinceClaim: 1 };
  let claiming: Promise<void> | undefined;
  const claimMore = async (): Promise<void> => {
    const { work, hasMore } = await claim(claimSize);
    claimed.push(...work);
    // Work that is all running already is not a backlog: the next round, after a pause, goes on.
    pass.more = hasMore && pass.startedSinceClaim > 0;
    // A claim whose work another process has taken says nothing about the work that follows.
    if (work.length > 0) pass.startedSinceClaim = 0;
  };
  const next = async (): Promise<Work | undefined> => {
    if (pass.isRefused || signal?.aborted === true) return undefined;
    while (claimed.length === 0 && pass.more && performance.now() < endsAt) {
      claiming ??= claimMore().finally(() => {
        claiming = undefined;
      });
      await claiming;
    }
    return claimed.shift();
  };
  const runNext = async (): Promise<void> => {
    for (let work = await next(); work !== undefined; work = await next()) {
      count += 1;
      const result = await run(work, signal);
      if (result === 'refused') pass.isRefused = true;
      if (result === 'started') pass.startedSinceClaim += 1;
    }
  };
  await allSettled(Array.from({ length: inFlight }, runNext));
  return { count, more: pass.more && !pass.isRefused };
}

export interface RelaySettings {
  readonly sql: Sql;
  readonly workflows: Pick<
    TemporalWorkflowStarter,
    | 'isReachable'
    | 'runDelivery'
    | 'runEmail'
    | 'runHeal'
    | 'runWebhook'
    | 'startInBackground'
    | 'startPayoutRun'
    | 'startReprocess'
  >;
  readonly logger: Logger;
  readonly overdueMs?: number;
  readonly pauseMs?: number;
}

export interface Relay extends BackgroundLoop {
  /** Runs one round: starts what is overdue now. Returns whether more may be overdue. */
  readonly round: () => Promise<boolean>;
  /** Runs a round now, and does not let payments wait that are marked for another evaluation. */
  readonly hurry: () => Promise<void>;
  /** Starts all open work again, also what was started a moment ago: the server has forgotten it. */
  readonly recover: () => Promise<void>;
}

/**
 * Starts the outbox relay. It starts the workflows of accepted deliveries and other stored work without an outcome,
 * whatever happened to Temporal: the work is in Postgres, so a wiped Temporal server loses nothing. A workflow that
 * still runs is left alone, unless its message is due. As soon as one of its deliveries or heals has ended, the relay starts the next.
 */
export function startRelay({
  sql,
  workflows,
  logger,
  overdueMs = OVERDUE_MS,
  pauseMs = PAUSE_MS,
}: RelaySettings): Relay {
  /** `performance.now()` ms: a clock that is set delays nothing. */
  let nextConvertAt = 0;
  let nextNoteAt = 0;
  /** How long a marked payment waits for its evaluation by `convert`. */
  let recheckAfterMs = overdueMs;
  const deliveryBacklog: Backlog<DeliveryKeys> = {
    claim: async (limit) => claimedUpTo(limit, await claimUnfinishedDeliveries(sql, overdueMs, limit)),
    run: (delivery, signal) => workflows.runDelivery(delivery, signal),
    claimSize: CLAIM,
    inFlight: RELAY_IN_FLIGHT,
  };
  const healBacklog: Backlog<{ readonly id: BindingId; readonly appId: AppId }> = {
    claim: async (limit) => claimedUpTo(limit, await claimBindingsToHeal(sql, overdueMs, limit)),
    run: ({ id, appId }, signal) => workflows.runHeal(id, appId, signal),
    claimSize: HEAL_CLAIM,
    inFlight: HEALS_IN_FLIGHT,
  };

  /** The last account that the claim of messages before served. */
  let lastAccountId: AccountId | null = null;
  const webhookBacklog: Backlog<ClaimedMessage> = {
    claim: async (limit) => {
      const claim = { claimMs: overdueMs, limit, after: lastAccountId };
      const { messages, lastAccountId: last, hasMore } = await claimWebhookMessages(sql, claim);
      lastAccountId = last ?? lastAccountId;
      return { work: messages, hasMore };
    },
    run: (message) => workflows.runWebhook(message),
    claimSize: CLAIM,
    inFlight: WEBHOOK_STARTS,
  };

  const emailBacklog: Backlog<EmailKeys> = {
    claim: async (limit) => {
      const { emails, hasMore } = await claimEmails(sql, overdueMs, limit);
      return { work: emails, hasMore };
    },
    run: (email) => workflows.runEmail(email),
    claimSize: CLAIM,
    inFlight: WEBHOOK_STARTS,
  };

  /** Starts the workflows of messages and mails that were written. */
  async function sendMessages(signal?: AbortSignal): Promise<boolean> {
    if (!workflows.isReachable()) return false;
    const passes = await allSettled([runOverdue(webhookBacklog, signal), runOverdue(emailBacklog, signal)]);
    return passes.some(({ more }) => more);
  }

  /** Whether there is a payment for `convert`. A search that fails does not stop the other one, and is not repeated at once. */
  async function hasWaitingPayment(): Promise<boolean> {
    let failure: unknown = null;
    const searches = [
      () => findConvertiblePayments(sql, null, 1),
      () => findPaymentsToRecheck(sql, { olderThanMs: recheckAfterMs, limit: 1 }),
    ];
    for (const search of searches) {
      try {
        if ((await search()).length > 0) return true;
      } catch (error) {
        nextConvertAt = performance.now() + overdueMs;
        if (isDatabaseUnavailable(error)) throw error;
        failure ??= error;
      }
    }
    if (failure !== null) throw failure;
    return false;
  }

  /** Records, once a minute, that there is nothing to convert: the duty is done. One that failed a moment ago waits as well. */
  async function noteNoWaitingPayment(): Promise<void> {
    if (performance.now() < nextNoteAt) return;
    if ((await findPaymentsToRecheck(sql, { limit: 1 })).length > 0) return;
    await recordDuty(sql, 'conversions');
    nextNoteAt = performance.now() + NOTE_PAUSE_MS;
  }

  /**
   * Starts `convert` when a missing rate has arrived, or when a marked payment has waited for its evaluation. A payment
   * that fails there is found again, but not at once.
   */
  async function convert(): Promise<number> {
    if (performance.now() < nextConvertAt) return 0;
    if (!(await hasWaitingPayment())) {
      await noteNoWaitingPayment();
      return 0;
    }
    nextConvertAt = performance.now() + overdueMs;
    recheckAfterMs = overdueMs;
    workflows.startInBackground('convert', undefined);
    return 1;
  }

  async function round(signal?: AbortSignal): Promise<boolean> {
    if (!workflows.isReachable()) return false;
    const failures: unknown[] = [];
    /** Goes on with the next kind of work where a statement of one fails, such as one that takes too long. */
    const attempt = async <T>(work: () => Promise<T>, otherwise: T): Promise<T> => {
      try {
        return await work();
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        failures.push(error);
        return otherwise;
      }
    };
    const nothing = { count: 0, more: false };
    const [deliveries = nothing, heals = nothing] = await allSettled([
      attempt(async () => await runOverdue(deliveryBacklog, signal), nothing),
      attempt(async () => await runOverdue(healBacklog, signal), nothing),
    ]);
    const conversions = await attempt(convert, 0);
    const reprocessRuns = await attempt(async () => await claimReprocessRuns(sql, overdueMs, PAGE), []);
    for (const run of reprocessRuns) workflows.startReprocess(run);
    const erasures = await attempt(async () => await claimErasures(sql, overdueMs, PAGE), []);
    for (const { id, appId } of erasures) workflows.startInBackground('erase', { erasureId: id }, appId);
    const payoutRuns = await attempt(async () => await claimPayoutRuns(sql, overdueMs, PAGE), []);
    for (const run of payoutRuns) workflows.startPayoutRun(run);
    const runs = reprocessRuns.length + erasures.length + payoutRuns.length;
    if (deliveries.count + heals.count + conversions + runs > 0) {
      logger.info({
        deliveries: deliveries.count,
        bindings: heals.count,
        conversions,
        reprocessRuns: reprocessRuns.length,
        erasures: erasures.length,
        payoutRuns: payoutRuns.length,
        msg: 'the relay started overdue work',
      });
    }
    if (failures.length > 0) throw failures[0];
    return deliveries.more || heals.more;
  }

  async function hurry(): Promise<void> {
    nextConvertAt = 0;
    recheckAfterMs = 0;
    await round();
    await sendMessages();
  }

  const { stop } = startBackgroundLoop(round, {
    pauseMs,
    hasMore: (more) => more,
    onError: (error) =>
      logger.warn({ err: error, msg: 'a round of the relay failed; the next one does its work' }),
  });
  const messages = startBackgroundLoop(sendMessages, {
    pauseMs: Math.min(pauseMs, WEBHOOK_PAUSE_MS),
    hasMore: (more) => more,
    onError: (error) =>
      logger.warn({ err: error, msg: 'messages were not passed to their workflows; the next round does it' }),
  });
  return {
    round,
    hurry,
    recover: async () => {
      await makeOverdue(sql, overdueMs);
      await hurry();
    },
    stop: async () => {
      await Promise.all([stop(), messages.stop()]);
    },
  };
}
