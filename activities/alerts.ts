import type { Logger } from 'pino';
import { appsAfter } from '../src/db/alert-facts.ts';
import { evaluateAlerts } from '../src/db/alert-evaluation.ts';
import { isDutyDone, recordDuty } from '../src/db/duties.ts';
import { foldRefunds } from '../src/db/refund-rollups.ts';
import { databaseClock } from '../src/db/clock.ts';
import { isDatabaseUnavailable } from '../src/db/errors.ts';
import type { Sql } from '../src/db/sql.ts';
import { PROVIDER_NAMES } from '../src/providers/index.ts';
import { throwIfCancelled } from './cancellation.ts';

export interface AlertActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Apps of a page; 50 by default. */
  readonly alertPage?: number;
}

/** What one page of an evaluation of alerts did. */
export interface AlertPage {
  readonly opened: number;
  readonly closed: number;
  /** The last app of the page. Null after the last page. */
  readonly next: string | null;
}

export interface AlertActivities {
  evaluateAlerts(after: string): Promise<AlertPage>;
}

const PAGE = 50;
/** A page begins no further app alone after this, ms: it is done before its time is over. */
const PAGE_MS = 15_000;
/** Statements that fold refunds, of one page. */
const MOST_FOLDS = 10;

/** The activity of the workflow that evaluates alerts. */
export function createAlertActivities({ sql, logger, alertPage = PAGE }: AlertActivityDeps): AlertActivities {
  const conditions = async () => ({ providers: PROVIDER_NAMES, now: await databaseClock(sql) });

  return {
    /**
     * Evaluates the alerts of the next apps after one. When that fails, it evaluates each of them alone, so that one app does not stop the
     * alerts of the others. Throws if none of several succeeds.
     */
    evaluateAlerts: async (after) => {
      const { failed, apps, ...page } = await evaluatePage(after);
      if (isDutyDone(after, { failed, next: page.next }, apps)) await recordDuty(sql, 'alerts');
      return page;
    },
  };

  /** `apps`: how many the page has. `failed`: how many of them could not be evaluated. */
  async function evaluatePage(
    after: string,
  ): Promise<AlertPage & { readonly failed: number; readonly apps: number }> {
    // A read adds what is left.
    for (let folds = 0; folds < MOST_FOLDS && (await foldRefunds(sql)) > 0; folds += 1) throwIfCancelled();
    const appIds = await appsAfter(sql, after, alertPage);
    const next = appIds.length === alertPage ? (appIds.at(-1) ?? null) : null;
    try {
      const done = await evaluateAlerts(sql, appIds, await conditions());
      return { ...done, next, failed: 0, apps: appIds.length };
    } catch (failure) {
      if (isDatabaseUnavailable(failure)) throw failure;
      let opened = 0;
      let closed = 0;
      let failed = 0;
      let tried = 0;
      const endsAt = performance.now() + PAGE_MS;
      for (const appId of appIds) {
        throwIfCancelled();
        if (performance.now() > endsAt) break;
        tried += 1;
        try {
          const done = await evaluateAlerts(sql, [appId], await conditions());
          opened += done.opened;
          closed += done.closed;
        } catch (error) {
          failed += 1;
          logger.warn({ err: error, appId, msg: 'the alerts of an app could not be evaluated' });
        }
      }
      // One app alone may be broken: that must not hold up the evaluations that follow.
      if (failed === tried && failed > 1) throw failure;
      const last = tried < appIds.length ? (appIds[tried - 1] ?? null) : next;
      return { opened, closed, next: last, failed, apps: appIds.length };
    }
  }
}
