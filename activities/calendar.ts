import type { Logger } from 'pino';
import { databaseClock } from '../src/db/clock.ts';
import { isDutyDone, recordDuty } from '../src/db/duties.ts';
import { isDatabaseUnavailable } from '../src/db/errors.ts';
import { draftScheduledRun, findDoneMonths, scheduledAppsAfter } from '../src/db/payout-run-drafts.ts';
import type { Sql } from '../src/db/sql.ts';
import { appsWithReportsAfter, writeWeeklyReports } from '../src/db/weekly-reports.ts';
import type { AppId } from '../src/domain/ids.ts';
import { monthThatIsDue } from '../src/domain/payout-schedule.ts';
import { mondayOfReport } from '../src/domain/weekly-report.ts';
import { throwIfCancelled } from './cancellation.ts';

export interface CalendarActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Apps of a page; 50 by default. */
  readonly calendarPage?: number;
}

/** What one page did. */
export interface CalendarPage {
  /** Runs that were drafted, or mails that were written. */
  readonly count: number;
  /** Apps that failed. The next run tries them again. A page of an earlier version does not say. */
  readonly failed?: number;
  /** The last app of the page. Null after the last page. */
  readonly next: string | null;
}

export interface CalendarActivities {
  draftScheduledRuns(after: string): Promise<CalendarPage>;
  writeWeeklyReports(after: string): Promise<CalendarPage>;
}

const PAGE = 50;
/** A page begins no further app after this, ms: it is done before its time is over. */
const PAGE_MS = 15_000;

/** The activities of the workflow that does what is due at a time of the calendar. */
export function createCalendarActivities({
  sql,
  logger,
  calendarPage = PAGE,
}: CalendarActivityDeps): CalendarActivities {
  return {
    /**
     * Drafts the payout runs that are due of the next apps with a schedule after one. An app that fails does not stop the others: it is
     * tried again in the next run.
     */
    draftScheduledRuns: async (after) => {
      const endsAt = performance.now() + PAGE_MS;
      const now = await databaseClock(sql);
      const apps = await scheduledAppsAfter(sql, after, calendarPage);
      let failed = 0;
      const due = apps.flatMap(({ appId, schedule, since }) => {
        try {
          const month = monthThatIsDue(schedule, since, now);
          return month === null ? [] : [{ appId, month }];
        } catch (error) {
          // Another version of the service, or of its data of time zones, stored the schedule.
          failed += 1;
          logger.error({ appId, err: error, msg: 'the payout schedule of an app cannot be read' });
          return [];
        }
      });
      const done = await findDoneMonths(sql, due);
      const open = due.filter(({ appId, month }) => !done.has(`${appId} ${month}`));
      // With those that could not be read. An app without anything to draft says nothing about those that fail.
      const tried = failed + open.length;
      let count = 0;
      for (const { appId } of open) {
        throwIfCancelled();
        const result = await draft(appId, now);
        if (result === 'drafted') count += 1;
        if (result === 'failed') failed += 1;
        if (performance.now() > endsAt && appId !== open.at(-1)?.appId) return { count, failed, next: appId };
      }
      const next = nextOf(apps.map(({ appId }) => appId));
      const page = { count, failed, next };
      if (isDutyDone(after, page, tried)) await recordDuty(sql, 'drafts');
      return page;
    },

    /**
     * Writes the reports that are due of the next apps after one: a mail for each address. When that fails, it writes those of each app
     * alone, so that one app does not stop the reports of the others. Throws if none of several succeeds.
     */
    writeWeeklyReports: async (after) => {
      const { apps, ...page } = await writeReports(after);
      if (isDutyDone(after, page, apps)) await recordDuty(sql, 'reports');
      return page;
    },
  };

  async function writeReports(
    after: string,
  ): Promise<CalendarPage & { readonly failed: number; readonly apps: number }> {
    const monday = mondayOfReport(await databaseClock(sql));
    const appIds = await appsWithReportsAfter(sql, after, calendarPage);
    const next = nextOf(appIds);
    try {
      const count = await writeWeeklyReports(sql, appIds, monday);
      return { count, failed: 0, apps: appIds.length, next };
    } catch (failure) {
      if (isDatabaseUnavailable(failure)) throw failure;
      const endsAt = performance.now() + PAGE_MS;
      let [count, failed, tried] = [0, 0, 0];
      for (const appId of appIds) {
        throwIfCancelled();
        if (performance.now() > endsAt) break;
        tried += 1;
        try {
          count += await writeWeeklyReports(sql, [appId], monday);
        } catch (error) {
          if (isDatabaseUnavailable(error)) throw error;
          failed += 1;
          logger.warn({ err: error, appId, msg: 'the weekly report of an app could not be written' });
        }
      }
      if (failed === tried && failed > 1) throw failure;
      const last = tried < appIds.length ? (appIds[tried - 1] ?? null) : next;
      return { count, failed, apps: appIds.length, next: last };
    }
  }

  /** Returns where the page after one begins. Null if it was the last one. */
  function nextOf(appIds: readonly AppId[]): AppId | null {
    return appIds.length === calendarPage ? (appIds.at(-1) ?? null) : null;
  }

  /** Drafts the run of an app. Returns `idle` if there is nothing to draft. */
  async function draft(appId: AppId, now: number): Promise<'drafted' | 'failed' | 'idle'> {
    try {
      if ((await draftScheduledRun(sql, appId, now)) !== 'drafted') return 'idle';
      logger.info({ appId, msg: 'the payout schedule has drafted a run' });
      return 'drafted';
    } catch (error) {
      // A draft that takes too long is that of this app.
      if (isDatabaseUnavailable(error)) throw error;
      logger.warn({ err: error, appId, msg: 'the payout schedule of an app could not draft its run' });
      return 'failed';
    }
  }
}
