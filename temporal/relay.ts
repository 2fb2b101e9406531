import type { Logger } from 'pino';
import { startBackgroundLoop } from '../src/background-loop.ts';
import type { BackgroundLoop } from '../src/background-loop.ts';
import { claimBindingsToHeal } from '../src/db/healing.ts';
import { claimUnfinishedDeliveries } from '../src/db/deliveries.ts';
import { findConvertiblePayments } from '../src/db/rates.ts';
import { claimReprocessRuns } from '../src/db/reprocess.ts';
import type { Sql } from '../src/db/sql.ts';
import type { TemporalWorkflowStarter } from './workflow-starter.ts';

/** A delivery without an outcome for this long gets its workflow started again. */
const OUTCOME_OVERDUE_MS = 30_000;
const PAUSE_MS = 5_000;
const PAGE = 200;
/** Starts under way at one time. */
const PARALLEL = 8;

export interface RelaySettings {
  readonly sql: Sql;
  readonly work: TemporalWorkflowStarter;
  readonly logger: Logger;
  readonly overdueMs?: number;
  readonly pauseMs?: number;
}

export interface Relay extends BackgroundLoop {
  /** One round: starts what is overdue now. Answers how many workflows were asked for. */
  readonly round: () => Promise<number>;
}

/**
 * Starts the workflow of every accepted delivery that has had no outcome in time, whatever happened to Temporal: the
 * inbox is in Postgres, so a wiped server loses nothing. A workflow that still runs is left alone.
 */
export function startRelay({
  sql,
  work,
  logger,
  overdueMs = OUTCOME_OVERDUE_MS,
  pauseMs = PAUSE_MS,
}: RelaySettings): Relay {
  let mayConvertAt = 0;

  /** Has payments evaluated whose rate has arrived. One that fails there is found again, but not at once. */
  async function convert(): Promise<number> {
    if (Date.now() < mayConvertAt) return 0;
    const found = await findConvertiblePayments(sql, null, 1);
    if (found.length === 0) return 0;
    mayConvertAt = Date.now() + overdueMs;
    work.startConvert();
    return 1;
  }

  async function round(): Promise<number> {
    if (!work.reachable()) return 0;
    const deliveries = await claimUnfinishedDeliveries(sql, overdueMs, PAGE);
    for (let at = 0; at < deliveries.length; at += PARALLEL) {
      await Promise.all(deliveries.slice(at, at + PARALLEL).map((id) => work.startDelivery(id)));
    }
    const bindings = await claimBindingsToHeal(sql, overdueMs, PAGE);
    work.onBindings(bindings);
    const conversions = await convert();
    const reprocessRuns = await claimReprocessRuns(sql, overdueMs, PAGE);
    for (const reprocessRunId of reprocessRuns) work.startReprocess(reprocessRunId);
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
      logger.warn({ err: error, msg: 'a round of the relay failed, the next one will do its work' }),
  });
  return { round, stop };
}
