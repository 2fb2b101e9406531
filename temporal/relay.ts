import type { Logger } from 'pino';
import { startBackgroundLoop } from '../src/lib/background-loop.ts';
import type { BackgroundLoop } from '../src/lib/background-loop.ts';
import { claimBindingsToHeal } from '../src/db/healing.ts';
import { claimUnfinishedDeliveries } from '../src/db/deliveries.ts';
import { findPaymentsToRecheck } from '../src/db/payments.ts';
import { findConvertiblePayments } from '../src/db/rates.ts';
import { claimReprocessRuns } from '../src/db/reprocess.ts';
import type { Sql } from '../src/db/sql.ts';
import type { TemporalWorkflowStarter } from './workflow-starter.ts';

/** Work without an outcome for this long has its workflow started again. */
const OVERDUE_MS = 30_000;
const PAUSE_MS = 5_000;
const PAGE = 200;
/** Starts in flight at once. */
const PARALLEL = 8;

export interface RelaySettings {
  readonly sql: Sql;
  readonly workflows: Pick<
    TemporalWorkflowStarter,
    'isReachable' | 'startDelivery' | 'healBinding' | 'startConvert' | 'startReprocess'
  >;
  readonly logger: Logger;
  readonly overdueMs?: number;
  readonly pauseMs?: number;
}

export interface Relay extends BackgroundLoop {
  /** Runs one round: starts what is overdue now. Returns how many workflows it requested. */
  readonly round: () => Promise<number>;
}

/**
 * Starts the outbox relay. It starts the workflows of accepted deliveries and other stored work without an outcome,
 * whatever happened to Temporal: the work is in Postgres, so a wiped Temporal server loses nothing. A workflow that
 * still runs is left alone.
 */
export function startRelay({
  sql,
  workflows,
  logger,
  overdueMs = OVERDUE_MS,
  pauseMs = PAUSE_MS,
}: RelaySettings): Relay {
  let nextConvertAt = 0;

  /**
   * Starts `convert` when a missing rate has arrived, or when an alias shows that a payment was attributed twice. A
   * payment that fails there is found again, but not at once.
   */
  async function convert(): Promise<number> {
    if (Date.now() < nextConvertAt) return 0;
    const found = await findConvertiblePayments(sql, null, 1);
    if (found.length === 0 && (await findPaymentsToRecheck(sql, overdueMs, 1)).length === 0) return 0;
    nextConvertAt = Date.now() + overdueMs;
    workflows.startConvert();
    return 1;
  }

  async function round(): Promise<number> {
    if (!workflows.isReachable()) return 0;
    const deliveries = await claimUnfinishedDeliveries(sql, overdueMs, PAGE);
    for (let at = 0; at < deliveries.length; at += PARALLEL) {
      await Promise.all(deliveries.slice(at, at + PARALLEL).map((id) => workflows.startDelivery(id)));
    }
    const bindings = await claimBindingsToHeal(sql, overdueMs, PAGE);
    for (const bindingId of bindings) workflows.healBinding(bindingId);
    const conversions = await convert();
    const reprocessRuns = await claimReprocessRuns(sql, overdueMs, PAGE);
    for (const reprocessRunId of reprocessRuns) workflows.startReprocess(reprocessRunId);
    const started = deliveries.length + bindings.length + conversions + reprocessRuns.length;
    if (started > 0) {
      logger.info({
        deliveries: deliveries.length,
        bindings: bindings.length,
        conversions,
        reprocessRuns: reprocessRuns.length,
        msg: 'the relay started overdue work',
      });
    }
    return started;
  }

  const { stop } = startBackgroundLoop(round, {
    pauseMs,
    onError: (error) =>
      logger.warn({ err: error, msg: 'a round of the relay failed; the next one does its work' }),
  });
  return { round, stop };
}
